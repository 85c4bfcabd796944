// Prepares the process: the runtime's own log, clock and abort become those of the platform layer.
#pragma once

#include <executorch/runtime/platform/compiler.h>

namespace executorch::runtime {
// Module calls it; further calls change nothing.
void runtime_init();
}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::runtime_init;
}  // namespace torch::executor
