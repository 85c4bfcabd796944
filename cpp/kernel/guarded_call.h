// Checks the calls of kernels of your own, which are foreign code: on request, that a kernel wrote
// nothing but its results.
#pragma once

#include "rushlight/kernel/arena_shadow.h"
#include "rushlight/kernel/kernel.h"

namespace rushlight {

// Calls the kernel, and returns Internal if it wrote anything but its results; what it wrote there
// is undone.
Status run_guarded(const Kernel& kernel, KernelContext& ctx, EValue* const* args,
                   ArenaShadow shadow);

}  // namespace rushlight
