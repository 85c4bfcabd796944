// What kernels that are not the runtime's own derive from. They are foreign code: their signatures
// are compared with the program's schemas, and it is checked on request that a kernel wrote nothing
// but its results. A method does both through the kernel, so that a program without such kernels
// does not link the checks.
#pragma once

#include <atomic>
#include <cstdint>

#include "rushlight/core/named_data.h"
#include "rushlight/kernel/arena_shadow.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernel/schema.h"

namespace rushlight {

// Calls the kernel, and returns Internal if it wrote anything but its results; what it wrote there
// is undone. A kernel that takes any arguments is called alone.
Status run_guarded(const Kernel& kernel, KernelContext& ctx, EValue* const* args,
                   ArenaShadow shadow);

// Functions rather than virtual ones: plugins are plain structs.
struct ForeignKernel {
  Status (*check)(const Kernel&, const NamedData& program, Message&) = check_against_schemas;
  Status (*run)(const Kernel&, KernelContext&, EValue* const*, ArenaShadow) = run_guarded;
  bool in_delegates = false;  // see RL_KERNEL_IN_DELEGATES in abi/rl_kernel_v1.h

  // How many arguments each call has, of a kernel that takes any: as many as the first one has that
  // is loaded. InvalidProgram for a call of another number.
  Status learn(size_t n_args, Message& message) const;
  size_t n_args() const { return n_args_.load(std::memory_order_relaxed); }

 private:
  mutable std::atomic<uint32_t> n_args_{0};
};

// The signature of kernels that take whatever arguments a call has, the return alias too, and check
// their number and kinds by themselves.
constexpr char kAnyArguments[] = "*";
inline bool takes_any(const Kernel& kernel) { return kernel.signature[0] == *kAnyArguments; }

}  // namespace rushlight
