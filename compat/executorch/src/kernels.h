// Kernels of an application as kernels of the runtime.
#pragma once

#include <executorch/runtime/kernel/operator_registry.h>

#include "rushlight/kernel/foreign_kernel.h"
#include "rushlight/kernel/kernel.h"

namespace executorch::runtime::internal {

class AdoptedKernel : public ::rushlight::ForeignKernel {
 public:
  AdoptedKernel() = default;
  AdoptedKernel(const AdoptedKernel&) = delete;
  AdoptedKernel& operator=(const AdoptedKernel&) = delete;

  // For a table; this object must stay where it is.
  const ::rushlight::Kernel& adopt(const Kernel& kernel);
  const ::rushlight::Kernel& entry() const { return entry_; }

 private:
  static ::rushlight::Status run(::rushlight::KernelContext& context,
                                 ::rushlight::EValue* const* args);

  ::rushlight::Kernel entry_ = {};
  OpFunction op_ = nullptr;
  size_t n_letters_ = 0;
};

// Fills a table with `adopted` kernels, those that are registered, and the runtime's own, as far as
// no kernel of the same name and key stands before.
Error fill_table(Span<const Kernel> kernels, AdoptedKernel* adopted,
                 ::rushlight::KernelTable& table);
// Those that are registered and the runtime's own.
const ::rushlight::KernelTable& registered_table();

}  // namespace executorch::runtime::internal
