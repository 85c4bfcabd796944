// What a kernel needs, over PyTorch's types (USE_ATEN_LIB): a source of kernels is compiled by it
// for a library of PyTorch's operators (gen_custom_ops_aot_lib). Programs and methods are not
// there.
#pragma once

#include <ATen/ATen.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/util/kernel_checks.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/assert.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#define ET_RUNTIME_NAMESPACE runtime

namespace executorch::aten {

using at::ArrayRef;
using at::BFloat16;
using at::Device;
using at::DeviceType;
using at::Half;
using at::IntArrayRef;
using at::Layout;
using at::MemoryFormat;
using at::OptionalArrayRef;
using at::OptionalIntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;
using at::TensorList;
using std::nullopt;
using std::nullopt_t;
using std::optional;
using std::string_view;
using SizesType = int64_t;
using DimOrderType = uint8_t;
using StridesType = int64_t;

}  // namespace executorch::aten

namespace exec_aten = executorch::aten;

namespace executorch::runtime {

// PyTorch calls kernels without a context, which may hand one of these to those that take it.
class KernelRuntimeContext {
 public:
  void fail(Error error) { failure_state_ = error; }
  ET_NODISCARD Error failure_state() const { return failure_state_; }
  Result<void*> allocate_temp(size_t size, size_t alignment = MemoryAllocator::kDefaultAlignment) {
    ET_CHECK_OR_RETURN_ERROR((alignment & (alignment - 1)) == 0, InvalidArgument,
                             "%zu is no power of two", alignment);
    blocks_.push_back(std::make_unique<uint8_t[]>(size + alignment));
    const auto address = reinterpret_cast<uintptr_t>(blocks_.back().get());
    return reinterpret_cast<void*>((address + alignment - 1) & ~(alignment - 1));
  }

 private:
  std::vector<std::unique_ptr<uint8_t[]>> blocks_;
  Error failure_state_ = Error::Ok;
};

// NotSupported for a tensor that PyTorch does not resize.
template <typename T>
ET_NODISCARD Error resize_tensor(const at::Tensor& t, at::ArrayRef<T> sizes) {
  const std::vector<int64_t> wide(sizes.begin(), sizes.end());
  try {
    t.resize_(wide);
  } catch (const std::exception& error) {
    ET_LOG(Error, "%s", error.what());
    return Error::NotSupported;
  }
  return Error::Ok;
}
ET_NODISCARD inline Error resize_tensor(const at::Tensor& t, at::IntArrayRef sizes) {
  return resize_tensor<int64_t>(t, sizes);
}

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::Error;
using ::executorch::runtime::KernelRuntimeContext;
using ::executorch::runtime::resize_tensor;
using RuntimeContext = ::executorch::runtime::KernelRuntimeContext;
}  // namespace torch::executor
