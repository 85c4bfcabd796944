// Ends the program through the platform layer.
#pragma once

#include <executorch/runtime/platform/compiler.h>

namespace executorch::runtime {
ET_NORETURN void runtime_abort();
}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::runtime_abort;
}  // namespace torch::executor
