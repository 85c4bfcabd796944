// Tensors that own their sizes, and their data if they are given it.
#pragma once

#include <c10/macros/Macros.h>
#include <c10/util/safe_numerics.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace executorch::extension {

using TensorPtr = std::shared_ptr<aten::Tensor>;

// A tensor over the caller's data; `deleter` is called with it when the tensor is destroyed. The
// dim order follows from the strides if it is empty, and the strides from it. The program ends for
// sizes, an order or strides that contradict each other.
TensorPtr make_tensor_ptr(
    std::vector<aten::SizesType> sizes, void* data, std::vector<aten::DimOrderType> dim_order,
    std::vector<aten::StridesType> strides, aten::ScalarType type = aten::ScalarType::Float,
    aten::Device device = aten::Device(aten::DeviceType::CPU),
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND,
    std::function<void(void*)> deleter = nullptr);
inline TensorPtr make_tensor_ptr(
    std::vector<aten::SizesType> sizes, void* data, aten::ScalarType type = aten::ScalarType::Float,
    aten::Device device = aten::Device(aten::DeviceType::CPU),
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND,
    std::function<void(void*)> deleter = nullptr) {
  return make_tensor_ptr(std::move(sizes), data, {}, {}, type, device, dynamism,
                         std::move(deleter));
}

// A tensor that owns the bytes of its elements.
TensorPtr make_tensor_ptr(
    std::vector<aten::SizesType> sizes, std::vector<uint8_t> data,
    std::vector<aten::DimOrderType> dim_order, std::vector<aten::StridesType> strides,
    aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND);
inline TensorPtr make_tensor_ptr(
    std::vector<aten::SizesType> sizes, std::vector<uint8_t> data,
    aten::ScalarType type = aten::ScalarType::Float,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return make_tensor_ptr(std::move(sizes), std::move(data), {}, {}, type, dynamism);
}

namespace internal {

// Elements as those of another type, to which they may be cast.
template <typename T>
std::vector<uint8_t> cast_elements(const std::vector<T>& data, aten::ScalarType type) {
  constexpr aten::ScalarType kFrom = runtime::CppTypeToScalarType<T>::value;
  ET_CHECK_MSG(runtime::canCast(kFrom, type), "%s cannot be cast to %s", runtime::toString(kFrom),
               runtime::toString(type));
  std::vector<uint8_t> bytes(data.size() * runtime::elementSize(type));
  struct {
    [[noreturn]] void fail(runtime::Error) {
      ET_CHECK_MSG(false, "elements cannot be cast to this type");
    }
  } context;
  ET_SWITCH_REALHBBF16_AND_UINT_TYPES(type, context, "make_tensor_ptr", CTYPE, [&] {
    for (size_t i = 0; i < data.size(); ++i) {
      const CTYPE value = runtime::convert<CTYPE>(static_cast<T>(data[i]));
      std::memcpy(bytes.data() + i * sizeof(CTYPE), &value, sizeof(CTYPE));
    }
  });
  return bytes;
}

}  // namespace internal

// A tensor that owns its elements, cast to `type` if that is another than T's.
template <typename T = float,
          aten::ScalarType deduced_type = runtime::CppTypeToScalarType<T>::value>
TensorPtr make_tensor_ptr(
    std::vector<aten::SizesType> sizes, std::vector<T> data,
    std::vector<aten::DimOrderType> dim_order = {}, std::vector<aten::StridesType> strides = {},
    aten::ScalarType type = deduced_type,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  const auto numel = aten::safe_numel(sizes.data(), static_cast<ssize_t>(sizes.size()));
  ET_CHECK_MSG(numel.ok() && data.size() == static_cast<size_t>(*numel),
               "the sizes stand for another number of elements than %zu", data.size());
  if (type != deduced_type) {
    return make_tensor_ptr(std::move(sizes), internal::cast_elements(data, type),
                           std::move(dim_order), std::move(strides), type, dynamism);
  }
  if constexpr (std::is_same_v<T, bool>) {
    // A vector of bools has no array.
    return make_tensor_ptr(std::move(sizes), internal::cast_elements(data, type),
                           std::move(dim_order), std::move(strides), type, dynamism);
  } else {
    auto owner = std::make_shared<std::vector<T>>(std::move(data));
    void* elements = owner->data();
    return make_tensor_ptr(std::move(sizes), elements, std::move(dim_order), std::move(strides),
                           type, aten::Device(aten::DeviceType::CPU), dynamism,
                           [owner = std::move(owner)](void*) {});
  }
}
template <typename T = float,
          aten::ScalarType deduced_type = runtime::CppTypeToScalarType<T>::value>
TensorPtr make_tensor_ptr(
    std::vector<T> data, aten::ScalarType type = deduced_type,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  const auto count = static_cast<aten::SizesType>(data.size());
  return make_tensor_ptr<T>(std::vector<aten::SizesType>{count}, std::move(data), {}, {}, type,
                            dynamism);
}
template <typename T = float,
          aten::ScalarType deduced_type = runtime::CppTypeToScalarType<T>::value>
TensorPtr make_tensor_ptr(
    std::vector<aten::SizesType> sizes, std::initializer_list<T> list,
    std::vector<aten::DimOrderType> dim_order = {}, std::vector<aten::StridesType> strides = {},
    aten::ScalarType type = deduced_type,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return make_tensor_ptr<T>(std::move(sizes), std::vector<T>(list), std::move(dim_order),
                            std::move(strides), type, dynamism);
}
template <typename T = float,
          aten::ScalarType deduced_type = runtime::CppTypeToScalarType<T>::value>
TensorPtr make_tensor_ptr(
    std::initializer_list<T> list, aten::ScalarType type = deduced_type,
    aten::TensorShapeDynamism dynamism = aten::TensorShapeDynamism::DYNAMIC_BOUND) {
  return make_tensor_ptr<T>(std::vector<T>(list), type, dynamism);
}
template <typename T, aten::ScalarType = runtime::CppTypeToScalarType<T>::value>
TensorPtr make_tensor_ptr(T value) {
  return make_tensor_ptr<T>(std::vector<aten::SizesType>{}, std::vector<T>{value});
}

// A view of another tensor's data, which must outlive it, with other sizes if they are given.
inline TensorPtr make_tensor_ptr(const aten::Tensor& tensor,
                                 std::vector<aten::SizesType> sizes = {},
                                 std::vector<aten::DimOrderType> dim_order = {},
                                 std::vector<aten::StridesType> strides = {},
                                 std::function<void(void*)> deleter = nullptr) {
  if (sizes.empty()) sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  const auto numel = aten::safe_numel(sizes.data(), static_cast<ssize_t>(sizes.size()));
  ET_CHECK_MSG(numel.ok() && *numel <= tensor.numel(), "a view of more elements than %zd",
               tensor.numel());
  if (dim_order.empty() && strides.empty() && sizes.size() == tensor.dim_order().size()) {
    dim_order.assign(tensor.dim_order().begin(), tensor.dim_order().end());
  }
  return make_tensor_ptr(std::move(sizes), tensor.mutable_data_ptr(), std::move(dim_order),
                         std::move(strides), tensor.scalar_type(),
                         aten::Device(aten::DeviceType::CPU), tensor.shape_dynamism(),
                         std::move(deleter));
}
// The same of a tensor that lives as long as the view.
inline TensorPtr make_tensor_ptr(const TensorPtr& tensor, std::vector<aten::SizesType> sizes = {},
                                 std::vector<aten::DimOrderType> dim_order = {},
                                 std::vector<aten::StridesType> strides = {}) {
  return make_tensor_ptr(*tensor, std::move(sizes), std::move(dim_order), std::move(strides),
                         [tensor](void*) {});
}

// A copy that owns its data; the program ends if elements cannot be cast to `type`.
TensorPtr clone_tensor_ptr(const aten::Tensor& tensor, aten::ScalarType type);
inline TensorPtr clone_tensor_ptr(const aten::Tensor& tensor) {
  return clone_tensor_ptr(tensor, tensor.scalar_type());
}
inline TensorPtr clone_tensor_ptr(const TensorPtr& tensor, aten::ScalarType type) {
  return clone_tensor_ptr(*tensor, type);
}
inline TensorPtr clone_tensor_ptr(const TensorPtr& tensor) { return clone_tensor_ptr(*tensor); }
// A copy on the processor, the only device that there is.
inline TensorPtr clone_tensor_ptr_to(const TensorPtr& tensor, aten::Device target) {
  ET_CHECK_MSG(target.is_cpu(), "tensors are in memory that the processor reads");
  return clone_tensor_ptr(*tensor);
}
ET_NODISCARD runtime::Error resize_tensor_ptr(TensorPtr& tensor,
                                              const std::vector<aten::SizesType>& sizes);

}  // namespace executorch::extension
