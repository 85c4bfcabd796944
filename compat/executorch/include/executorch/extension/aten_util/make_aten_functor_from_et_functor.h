// WRAP_TO_ATEN(kernel, N): a kernel as a function over PyTorch's types, to be registered as an
// operator of PyTorch. N is the index of the parameter that the kernel writes and returns.
#pragma once

#include <ATen/ATen.h>
#include <executorch/extension/aten_util/aten_bridge.h>
#include <executorch/extension/kernel_util/type_list.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace executorch::extension::internal {

// PyTorch's type for one of a kernel's.
template <typename T>
struct type_map final {
  using type = T;
};
template <typename T>
struct type_map<const T> final {
  using type = const typename type_map<T>::type;
};
template <typename T>
struct type_map<T&> final {
  using type = typename type_map<T>::type&;
};
template <>
struct type_map<aten::Tensor> final {
  using type = at::Tensor;
};
template <>
struct type_map<aten::Scalar> final {
  using type = at::Scalar;
};
template <>
struct type_map<aten::ScalarType> final {
  using type = at::ScalarType;
};
template <typename T>
struct type_map<std::optional<T>> final {
  using type = std::optional<typename type_map<T>::type>;
};
template <typename T>
struct type_map<aten::ArrayRef<T>> final {
  using type = at::ArrayRef<typename type_map<T>::type>;
};
template <typename T>
using map_t = typename type_map<T>::type;

// An argument for the kernel, and what it points to, until the call has ended.
template <typename T>
class Argument {
 public:
  explicit Argument(const map_t<T>& value) : value_(static_cast<T>(value)) {}
  T& get() { return value_; }

 private:
  T value_;
};

template <>
class Argument<aten::Scalar> {
 public:
  explicit Argument(const at::Scalar& value)
      : value_(value.isFloatingPoint() ? aten::Scalar(value.toDouble())
               : value.isBoolean()     ? aten::Scalar(value.toBool())
                                       : aten::Scalar(value.toLong())) {}
  aten::Scalar& get() { return value_; }

 private:
  aten::Scalar value_;
};

// A view of PyTorch's tensor, or of a copy if that is not row-major.
template <>
class Argument<aten::Tensor> {
 public:
  explicit Argument(const at::Tensor& tensor)
      : original_(tensor),
        dense_(tensor.contiguous()),
        sizes_(tensor.sizes().begin(), tensor.sizes().end()),
        strides_(dense_.strides().begin(), dense_.strides().end()),
        dim_order_(sizes_.size()),
        impl_(torch_to_executorch_scalar_type(tensor.dtype()), static_cast<ssize_t>(sizes_.size()),
              sizes_.data(), dense_.mutable_data_ptr(), order(dim_order_), strides_.data(),
              aten::TensorShapeDynamism::DYNAMIC_BOUND),
        tensor_(&impl_) {
    TORCH_CHECK(tensor.device().is_cpu(), "kernels compute on the processor, but a tensor is on ",
                tensor.device());
  }
  Argument(const Argument&) = delete;
  Argument& operator=(const Argument&) = delete;
  aten::Tensor& get() { return tensor_; }

  // What the kernel wrote, and its sizes, become the original's.
  void give_back() {
    const std::vector<int64_t> now(tensor_.sizes().begin(), tensor_.sizes().end());
    if (original_.sizes() != at::IntArrayRef(now)) {
      dense_.resize_(now);
      if (!original_.is_same(dense_)) original_.resize_(now);
    }
    if (!original_.is_same(dense_)) original_.copy_(dense_);
  }

 private:
  static uint8_t* order(std::vector<uint8_t>& dims) {
    for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<uint8_t>(i);
    return dims.data();
  }

  at::Tensor original_, dense_;
  std::vector<aten::SizesType> sizes_;
  std::vector<aten::StridesType> strides_;
  std::vector<aten::DimOrderType> dim_order_;
  aten::TensorImpl impl_;
  aten::Tensor tensor_;
};

template <typename T>
class Argument<std::optional<T>> {
 public:
  explicit Argument(const std::optional<map_t<T>>& value) {
    if (!value.has_value()) return;
    held_ = std::make_unique<Argument<T>>(*value);
    value_.emplace(held_->get());
  }
  std::optional<T>& get() { return value_; }

 private:
  std::unique_ptr<Argument<T>> held_;
  std::optional<T> value_;
};

template <typename T>
class Argument<aten::ArrayRef<T>> {
 public:
  explicit Argument(at::ArrayRef<map_t<T>> values) {
    for (const auto& value : values) {
      held_.push_back(std::make_unique<Argument<T>>(value));
      items_.push_back(held_.back()->get());
    }
    value_ = aten::ArrayRef<T>(items_.data(), items_.size());
  }
  aten::ArrayRef<T>& get() { return value_; }

 private:
  std::vector<std::unique_ptr<Argument<T>>> held_;
  std::vector<T> items_;
  aten::ArrayRef<T> value_;
};
// A vector of bools has no array.
template <>
class Argument<aten::ArrayRef<bool>> {
 public:
  explicit Argument(at::ArrayRef<bool> values) : value_(values.data(), values.size()) {}
  aten::ArrayRef<bool>& get() { return value_; }

 private:
  aten::ArrayRef<bool> value_;
};

template <typename Parameter>
using argument_t = Argument<std::remove_cv_t<std::remove_reference_t<Parameter>>>;

template <typename Parameter, typename Held>
void give_back(Held& held) {
  if constexpr (std::is_same_v<Parameter, aten::Tensor&>) held.give_back();
}

template <class Function, Function kernel, int N = -1>
struct wrapper_impl;

template <class Return, class... Parameters, Return (*kernel)(Parameters...), int N>
struct wrapper_impl<Return (*)(Parameters...), kernel, N> {
  static_assert(!std::is_reference_v<Return> || N >= 0,
                "the kernel returns a tensor that it writes: say which parameter that is, "
                "WRAP_TO_ATEN(kernel, index)");
  static_assert(N < static_cast<int>(sizeof...(Parameters)),
                "the kernel has no parameter of this index");

  static map_t<Return> wrap(map_t<Parameters>... arguments) {
    return call(std::index_sequence_for<Parameters...>(), arguments...);
  }

 private:
  template <size_t... indices>
  static map_t<Return> call(std::index_sequence<indices...>, map_t<Parameters>&... arguments) {
    std::tuple<argument_t<Parameters>...> held(arguments...);
    if constexpr (N >= 0) {
      static_assert(
          std::is_same_v<
              kernel_util_internal::element_t<N, kernel_util_internal::typelist<Parameters...>>,
              Return>,
          "the parameter of this index is not what the kernel returns");
      kernel(std::get<indices>(held).get()...);
      (give_back<Parameters>(std::get<indices>(held)), ...);
      return std::get<N>(std::forward_as_tuple(arguments...));
    } else if constexpr (std::is_void_v<Return>) {
      kernel(std::get<indices>(held).get()...);
      (give_back<Parameters>(std::get<indices>(held)), ...);
    } else {
      Return result = kernel(std::get<indices>(held).get()...);
      (give_back<Parameters>(std::get<indices>(held)), ...);
      if constexpr (std::is_same_v<Return, aten::Tensor>) {
        return alias_attensor_to_etensor(result).clone();
      } else {
        return static_cast<map_t<Return>>(result);
      }
    }
  }
};

}  // namespace executorch::extension::internal

#define ET_WRAP_WITH_INDEX_(kernel_, index_) \
  ::executorch::extension::internal::wrapper_impl<decltype(&(kernel_)), &(kernel_), index_>::wrap
#define ET_WRAP_ALONE_(kernel_) \
  ::executorch::extension::internal::wrapper_impl<decltype(&(kernel_)), &(kernel_)>::wrap
#define ET_PICK_WRAP_(_1, _2, macro_, ...) macro_
#define WRAP_TO_ATEN(...) \
  ET_PICK_WRAP_(__VA_ARGS__, ET_WRAP_WITH_INDEX_, ET_WRAP_ALONE_, )(__VA_ARGS__)
