// A rushlight::Tensor under ExecuTorch's name and functions. It is that struct and nothing else, so
// that a pointer to one is a pointer to the other.
#pragma once

#include <executorch/runtime/core/array_ref.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/portable_type/device.h>
#include <executorch/runtime/core/portable_type/scalar_type.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/tensor_shape_dynamism.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstring>
#include <type_traits>

#include "rushlight/core/tensor.h"

namespace executorch::runtime {
namespace internal {
class TensorResizerFriend;
}  // namespace internal
namespace etensor {

class TensorImpl {
 public:
  using SizesType = int32_t;
  using DimOrderType = uint8_t;
  using StridesType = int32_t;

  TensorImpl() = delete;
  // The arrays belong to the caller. Without a dim order the tensor is in row-major order; without
  // strides it has none, and functions that read them must not be called.
  TensorImpl(ScalarType type, ssize_t dim, SizesType* sizes, void* data = nullptr,
             DimOrderType* dim_order = nullptr, StridesType* strides = nullptr,
             TensorShapeDynamism dynamism = TensorShapeDynamism::STATIC,
             DeviceType device_type = DeviceType::CPU, DeviceIndex device_index = 0) {
    ET_CHECK_MSG(dim >= 0 && static_cast<size_t>(dim) <= ::rushlight::kMaxRank,
                 "a tensor has at most %zu dimensions, not %zd", ::rushlight::kMaxRank, dim);
    ET_CHECK_MSG(device_type == DeviceType::CPU && device_index <= 0,
                 "tensors are in memory that the processor reads: DeviceType::CPU");
    static constexpr DimOrderType kRowMajor[::rushlight::kMaxRank] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                                      8, 9, 10, 11, 12, 13, 14, 15};
    tensor_.data = data;
    tensor_.sizes = sizes;
    tensor_.strides = strides;
    tensor_.dim_order = dim_order != nullptr ? dim_order : kRowMajor;
    tensor_.rank = static_cast<uint8_t>(dim);
    tensor_.dtype = static_cast<::rushlight::DType>(type);
    tensor_.dynamism = static_cast<::rushlight::Dynamism>(dynamism);
    ET_CHECK_MSG(::rushlight::count_elements(tensor_.shape(), &tensor_.numel),
                 "sizes are negative, or their product overflows");
    tensor_.capacity = tensor_.numel;
  }

  size_t nbytes() const { return tensor_.nbytes(); }
  ssize_t size(ssize_t dim) const {
    ET_CHECK_MSG(dim >= 0 && dim < this->dim(), "dimension %zd is not in 0 to %zd", dim,
                 this->dim() - 1);
    return tensor_.sizes[dim];
  }
  ssize_t dim() const { return tensor_.rank; }
  ssize_t numel() const { return static_cast<ssize_t>(tensor_.numel); }
  ScalarType scalar_type() const { return static_cast<ScalarType>(tensor_.dtype); }
  ScalarType dtype() const { return scalar_type(); }
  ssize_t element_size() const {
    return static_cast<ssize_t>(::rushlight::element_size(tensor_.dtype));
  }
  const ArrayRef<SizesType> sizes() const { return {tensor_.sizes, tensor_.rank}; }
  const ArrayRef<DimOrderType> dim_order() const { return {tensor_.dim_order, tensor_.rank}; }
  const ArrayRef<StridesType> strides() const { return {tensor_.strides, tensor_.rank}; }
  TensorShapeDynamism shape_dynamism() const {
    return static_cast<TensorShapeDynamism>(tensor_.dynamism);
  }
  Device device() const { return Device(DeviceType::CPU); }
  DeviceType device_type() const { return DeviceType::CPU; }
  DeviceIndex device_index() const { return 0; }

  template <typename T>
  const T* data() const {
    return tensor_.as<const T>();
  }
  const void* data() const { return tensor_.data; }
  template <typename T>
  T* mutable_data() const {
    return tensor_.as<T>();
  }
  void* mutable_data() const { return tensor_.data; }
  void set_data(void* data) { tensor_.data = data; }

  // The runtime's tensor, which this is.
  ::rushlight::Tensor& rushlight() { return tensor_; }
  static TensorImpl* of(::rushlight::Tensor* tensor) {
    return reinterpret_cast<TensorImpl*>(tensor);
  }

 private:
  ::rushlight::Tensor tensor_;
};

static_assert(std::is_standard_layout_v<TensorImpl> &&
                  sizeof(TensorImpl) == sizeof(::rushlight::Tensor),
              "a TensorImpl is a rushlight::Tensor");

// InvalidArgument if a size is negative or the product overflows.
inline Result<ssize_t> safe_numel(const TensorImpl::SizesType* sizes, ssize_t dim) {
  int64_t numel = 0;
  const bool counted = dim >= 0 && (dim == 0 || sizes != nullptr) &&
                       ::rushlight::count_elements({sizes, static_cast<size_t>(dim)}, &numel);
  ET_CHECK_OR_RETURN_ERROR(counted, InvalidArgument,
                           "a size is negative, or the product of the sizes overflows");
  return static_cast<ssize_t>(numel);
}
inline ssize_t compute_numel(const TensorImpl::SizesType* sizes, ssize_t dim) {
  return safe_numel(sizes, dim).get();
}

#define ET_PRI_TENSOR_SIZE "zd"
#define ET_PRI_TENSOR_DIM "zd"
#define ET_PRI_TENSOR_NUMEL "zd"
#define ET_PRI_SIZES_AND_STRIDES "d"

}  // namespace etensor
}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::etensor::compute_numel;
using ::executorch::runtime::etensor::safe_numel;
using ::executorch::runtime::etensor::TensorImpl;
}  // namespace torch::executor
