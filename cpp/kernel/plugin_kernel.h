// A kernel of a library that was built apart (abi/rl_kernel_v1.h), as a Kernel: every struct and
// pointer that comes from there is checked, and its errors keep their text.
#pragma once

#include "rushlight/abi/rl_kernel_v1.h"
#include "rushlight/kernel/foreign_kernel.h"

namespace rushlight {

class PluginKernel : public ForeignKernel {
 public:
  PluginKernel() = default;
  PluginKernel(const PluginKernel&) = delete;
  PluginKernel& operator=(const PluginKernel&) = delete;

  // `kernel` and what it points to must outlive this object. InvalidArgument for another version, a
  // struct that is too small or lacks a function, and a name or a signature that is none; the
  // message says what.
  Status adopt(const rl_kernel_v1* kernel, Message& message);
  // Whether another kernel is of the same function and object: the same library was given twice.
  bool is_same(const Kernel& other) const;
  // For a table. This object must stay where it is.
  const Kernel& kernel() const { return entry_; }

 private:
  static Status run(KernelContext& ctx, EValue* const* args);

  rl_kernel_v1 kernel_ = {};
  Kernel entry_ = {};
  size_t n_args_ = 0;  // 0 if it takes any number
};

}  // namespace rushlight
