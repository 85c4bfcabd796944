// Kernels that are registered, as plain C (rushlight/abi/rl_kernel_v1.h): a shared library of them
// is one that any Rushlight runtime loads, which has its own code of this folder or none.
#pragma once

#include <executorch/runtime/kernel/operator_registry.h>

#include "rushlight/abi/rl_kernel_v1.h"

namespace executorch::runtime::internal {

// `kernel` must outlive what is returned. One without types takes any arguments.
rl_kernel_v1 export_kernel(const Kernel& kernel);

}  // namespace executorch::runtime::internal
