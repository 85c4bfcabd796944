// Kernels, and the table of those that are registered. They come before the runtime's own: one of
// the same operator hides it.
#pragma once

#include <executorch/runtime/core/array_ref.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/platform/compiler.h>
#include <executorch/runtime/platform/platform.h>

#include <cstring>

#define ET_LOG_KERNEL_KEY(key_) \
  ET_LOG(Info, "key: %s, is_fallback: %s", (key_).data(), (key_).is_fallback() ? "true" : "false")

namespace executorch::runtime {

class KernelRuntimeContext;
// Gets the arguments of the operator, and its return value last.
using OpFunction = void (*)(KernelRuntimeContext&, Span<EValue*>);

struct TensorMeta {
  aten::ScalarType dtype_;
  Span<aten::DimOrderType> dim_order_;

  TensorMeta() = default;
  TensorMeta(aten::ScalarType dtype, Span<aten::DimOrderType> order)
      : dtype_(dtype), dim_order_(order) {}
  bool equals(const TensorMeta& other) const {
    const size_t n = dim_order_.size();
    return dtype_ == other.dtype_ && n == other.dim_order_.size() &&
           (n == 0 || std::memcmp(dim_order_.data(), other.dim_order_.data(), n) == 0);
  }
  bool operator==(const TensorMeta& other) const { return equals(other); }
  bool operator!=(const TensorMeta& other) const { return !equals(other); }
};

// The dtypes and dim orders that a kernel is for: "v1/6;0,1|6;0,1|6;0,1". A kernel without one
// serves what no other is for.
struct KernelKey {
  constexpr KernelKey() = default;
  constexpr KernelKey(const char* data) : data_(data) {}
  bool equals(const KernelKey& other) const {
    if (is_fallback() || other.is_fallback()) return is_fallback() == other.is_fallback();
    return std::strcmp(data_, other.data_) == 0;
  }
  bool operator==(const KernelKey& other) const { return equals(other); }
  bool operator!=(const KernelKey& other) const { return !equals(other); }
  bool is_fallback() const { return data_ == nullptr; }
  const char* data() const { return data_; }

 private:
  const char* data_ = nullptr;
};

struct Kernel {
  const char* name_ = nullptr;  // must outlive the table
  KernelKey kernel_key_;
  OpFunction op_ = nullptr;
  // What the function takes, in the letters of rushlight/kernel/kernel.h, for a kernel that was
  // made from a function with types; then the runtime checks the arguments of a program against it.
  const char* signature_ = nullptr;

  constexpr Kernel() = default;
  constexpr explicit Kernel(const char* name, OpFunction op) : name_(name), op_(op) {}
  constexpr explicit Kernel(const char* name, KernelKey key, OpFunction op)
      : name_(name), kernel_key_(key), op_(op) {}
};

// Registers kernels; ends the program for one that is registered already, and for too many. Kernels
// are registered before the first method is loaded.
ET_NODISCARD Error register_kernels(const Span<const Kernel> kernels);
ET_NODISCARD inline Error register_kernel(const Kernel& kernel) {
  return register_kernels({&kernel, 1});
}
// The kernels that were registered, without the runtime's own.
Span<const Kernel> get_registered_kernels();
// Whether there is a kernel, the runtime's own included.
bool registry_has_op_function(const char* name, Span<const TensorMeta> meta_list = {});
// A kernel that was registered. OperatorMissing if there is none: the runtime's own are not of this
// type.
Result<OpFunction> get_op_function_from_registry(const char* name,
                                                 Span<const TensorMeta> meta_list = {});
Result<OpFunction> get_op_function_from_registry(const char* name, Span<const TensorMeta> meta_list,
                                                 Span<const Kernel> kernels);

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::Kernel;
using ::executorch::runtime::KernelKey;
using ::executorch::runtime::KernelRuntimeContext;
using ::executorch::runtime::OpFunction;
using ::executorch::runtime::TensorMeta;
inline ::executorch::runtime::Error register_kernels(ArrayRef<Kernel> kernels) {
  return ::executorch::runtime::register_kernels({kernels.data(), kernels.size()});
}
inline ArrayRef<Kernel> get_kernels() {
  const auto kernels = ::executorch::runtime::get_registered_kernels();
  return {kernels.data(), kernels.size()};
}
inline bool hasOpsFn(const char* name, ArrayRef<TensorMeta> meta_list = {}) {
  return ::executorch::runtime::registry_has_op_function(name,
                                                         {meta_list.data(), meta_list.size()});
}
inline OpFunction getOpsFn(const char* name, ArrayRef<TensorMeta> meta_list = {}) {
  return *::executorch::runtime::get_op_function_from_registry(
      name, {meta_list.data(), meta_list.size()});
}
}  // namespace torch::executor
