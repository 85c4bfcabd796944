// Tensors over the caller's memory, and tensors with given or random elements.
#pragma once

#include <executorch/extension/tensor/tensor_ptr.h>

namespace executorch::extension {

// for_blob(data, sizes).type(t).deleter(d): what make_tensor_ptr() takes, by names.
class TensorPtrMaker final {
 public:
  TensorPtrMaker(const TensorPtrMaker&) = delete;
  TensorPtrMaker& operator=(const TensorPtrMaker&) = delete;
  TensorPtrMaker(TensorPtrMaker&&) = default;
  TensorPtrMaker& operator=(TensorPtrMaker&&) = default;

  TensorPtrMaker&& type(aten::ScalarType type) {
    type_ = type;
    return std::move(*this);
  }
  TensorPtrMaker&& dim_order(std::vector<aten::DimOrderType> dim_order) {
    dim_order_ = std::move(dim_order);
    return std::move(*this);
  }
  TensorPtrMaker&& strides(std::vector<aten::StridesType> strides) {
    strides_ = std::move(strides);
    return std::move(*this);
  }
  TensorPtrMaker&& dynamism(aten::TensorShapeDynamism dynamism) {
    dynamism_ = dynamism;
    return std::move(*this);
  }
  TensorPtrMaker&& deleter(std::function<void(void*)>&& deleter) {
    deleter_ = std::move(deleter);
    return std::move(*this);
  }
  TensorPtrMaker&& device(aten::Device device) {
    device_ = device;
    return std::move(*this);
  }
  TensorPtr make_tensor_ptr() && {
    return extension::make_tensor_ptr(std::move(sizes_), data_, std::move(dim_order_),
                                      std::move(strides_), type_, device_, dynamism_,
                                      std::move(deleter_));
  }
  operator TensorPtr() && { return std::move(*this).make_tensor_ptr(); }

 private:
  friend TensorPtrMaker for_blob(void* data, std::vector<aten::SizesType> sizes,
                                 aten::ScalarType type);
  TensorPtrMaker(void* data, std::vector<aten::SizesType> sizes, aten::ScalarType type)
      : sizes_(std::move(sizes)), data_(data), type_(type) {}

  std::vector<aten::SizesType> sizes_;
  std::vector<aten::StridesType> strides_;
  std::vector<aten::DimOrderType> dim_order_;
  std::function<void(void*)> deleter_;
  void* data_;
  aten::ScalarType type_;
  aten::TensorShapeDynamism dynamism_ = aten::TensorShapeDynamism::DYNAMIC_BOUND;
  aten::Device device_ = aten::Device(aten::DeviceType::CPU);
};

inline TensorPtrMaker for_blob(void* data, std::vector<aten::SizesType> sizes,
                               aten::ScalarType type = aten::ScalarType::Float) {
  return TensorPtrMaker(data, std::move(sizes), type);
}

inline TensorPtr from_blob(
    void* data, std::vector<aten::SizesType> sizes, aten::ScalarType type = aten::ScalarType::Float,
    aten::Device device = aten::Device(aten::DeviceType::CPU),
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return for_blob(data, std::move(sizes), type).device(device).dynamism(dynamism);
}
inline TensorPtr from_blob(
    void* data, std::vector<aten::SizesType> sizes, std::vector<aten::StridesType> strides,
    aten::ScalarType type = aten::ScalarType::Float,
    aten::Device device = aten::Device(aten::DeviceType::CPU),
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return for_blob(data, std::move(sizes), type)
      .strides(std::move(strides))
      .device(device)
      .dynamism(dynamism);
}
inline TensorPtr from_blob(
    void* data, std::vector<aten::SizesType> sizes, aten::ScalarType type, aten::Device device,
    std::function<void(void*)>&& deleter,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return for_blob(data, std::move(sizes), type)
      .device(device)
      .deleter(std::move(deleter))
      .dynamism(dynamism);
}
inline TensorPtr from_blob(
    void* data, std::vector<aten::SizesType> sizes, std::vector<aten::StridesType> strides,
    aten::ScalarType type, aten::Device device, std::function<void(void*)>&& deleter,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return for_blob(data, std::move(sizes), type)
      .strides(std::move(strides))
      .device(device)
      .deleter(std::move(deleter))
      .dynamism(dynamism);
}

namespace internal {
inline std::vector<aten::SizesType> sizes_of(const TensorPtr& tensor) {
  return {tensor->sizes().begin(), tensor->sizes().end()};
}
inline std::vector<aten::StridesType> strides_of(const TensorPtr& tensor) {
  return {tensor->strides().begin(), tensor->strides().end()};
}
inline aten::ScalarType type_of(const TensorPtr& tensor, aten::ScalarType type) {
  return type != aten::ScalarType::Undefined ? type : tensor->scalar_type();
}
}  // namespace internal

// Elements that are not set.
TensorPtr empty_strided(
    std::vector<aten::SizesType> sizes, std::vector<aten::StridesType> strides,
    aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND);
inline TensorPtr empty_like(
    const TensorPtr& other, aten::ScalarType type = aten::ScalarType::Undefined,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return empty_strided(internal::sizes_of(other), internal::strides_of(other),
                       internal::type_of(other, type), dynamism);
}
inline TensorPtr empty(
    std::vector<aten::SizesType> sizes, aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return empty_strided(std::move(sizes), {}, type, dynamism);
}
// Elements that are one number.
TensorPtr full_strided(
    std::vector<aten::SizesType> sizes, std::vector<aten::StridesType> strides,
    aten::Scalar fill_value, aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND);
inline TensorPtr full_like(
    const TensorPtr& other, aten::Scalar fill_value,
    aten::ScalarType type = aten::ScalarType::Undefined,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return full_strided(internal::sizes_of(other), internal::strides_of(other), fill_value,
                      internal::type_of(other, type), dynamism);
}
inline TensorPtr full(
    std::vector<aten::SizesType> sizes, aten::Scalar fill_value,
    aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return full_strided(std::move(sizes), {}, fill_value, type, dynamism);
}
inline TensorPtr scalar_tensor(aten::Scalar value,
                               aten::ScalarType type = aten::ScalarType::Float) {
  return full({}, value, type);
}
inline TensorPtr ones_like(
    const TensorPtr& other, aten::ScalarType type = aten::ScalarType::Undefined,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return full_like(other, 1, type, dynamism);
}
inline TensorPtr ones(
    std::vector<aten::SizesType> sizes, aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return full(std::move(sizes), 1, type, dynamism);
}
inline TensorPtr zeros_like(
    const TensorPtr& other, aten::ScalarType type = aten::ScalarType::Undefined,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return full_like(other, 0, type, dynamism);
}
inline TensorPtr zeros(
    std::vector<aten::SizesType> sizes, aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return full(std::move(sizes), 0, type, dynamism);
}
// Random elements: uniform in [0, 1), normal, and integers from low to high - 1.
TensorPtr rand_strided(
    std::vector<aten::SizesType> sizes, std::vector<aten::StridesType> strides,
    aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND);
inline TensorPtr rand_like(
    const TensorPtr& other, aten::ScalarType type = aten::ScalarType::Undefined,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return rand_strided(internal::sizes_of(other), internal::strides_of(other),
                      internal::type_of(other, type), dynamism);
}
inline TensorPtr rand(
    std::vector<aten::SizesType> sizes, aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return rand_strided(std::move(sizes), {}, type, dynamism);
}
TensorPtr randn_strided(
    std::vector<aten::SizesType> sizes, std::vector<aten::StridesType> strides,
    aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND);
inline TensorPtr randn_like(
    const TensorPtr& other, aten::ScalarType type = aten::ScalarType::Undefined,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return randn_strided(internal::sizes_of(other), internal::strides_of(other),
                       internal::type_of(other, type), dynamism);
}
inline TensorPtr randn(
    std::vector<aten::SizesType> sizes, aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return randn_strided(std::move(sizes), {}, type, dynamism);
}
TensorPtr randint_strided(
    int64_t low, int64_t high, std::vector<aten::SizesType> sizes,
    std::vector<aten::StridesType> strides, aten::ScalarType type = aten::ScalarType::Int,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND);
inline TensorPtr randint_like(
    const TensorPtr& other, int64_t low, int64_t high,
    aten::ScalarType type = aten::ScalarType::Undefined,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return randint_strided(low, high, internal::sizes_of(other), internal::strides_of(other),
                         internal::type_of(other, type), dynamism);
}
inline TensorPtr randint(
    int64_t low, int64_t high, std::vector<aten::SizesType> sizes,
    aten::ScalarType type = aten::ScalarType::Int,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return randint_strided(low, high, std::move(sizes), {}, type, dynamism);
}

}  // namespace executorch::extension
