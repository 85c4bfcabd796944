// Registers the kernels. ${generated_comment}
// clang-format off
#pragma once

#include <executorch/runtime/core/error.h>

namespace torch::executor {

// To be called once, before the first method is loaded.
Error register_all_kernels();

}  // namespace torch::executor
