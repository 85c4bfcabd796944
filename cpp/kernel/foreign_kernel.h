// What kernels that are not the runtime's own derive from. They are foreign code: their signatures
// are compared with the program's schemas, and it is checked on request that a kernel wrote nothing
// but its results. A method does both through the kernel, so that a program without such kernels
// does not link the checks.
#pragma once

#include "rushlight/core/named_data.h"
#include "rushlight/kernel/arena_shadow.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernel/schema.h"

namespace rushlight {

// Calls the kernel, and returns Internal if it wrote anything but its results; what it wrote there
// is undone.
Status run_guarded(const Kernel& kernel, KernelContext& ctx, EValue* const* args,
                   ArenaShadow shadow);

// Functions rather than virtual ones: plugins are plain structs.
struct ForeignKernel {
  Status (*check)(const Kernel&, const NamedData& program, Message&) = check_against_schemas;
  Status (*run)(const Kernel&, KernelContext&, EValue* const*, ArenaShadow) = run_guarded;
  bool in_delegates = false;  // see RL_KERNEL_IN_DELEGATES in abi/rl_kernel_v1.h
};

}  // namespace rushlight
