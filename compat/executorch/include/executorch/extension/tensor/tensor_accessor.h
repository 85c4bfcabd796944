// Elements of a tensor by their indices: make_tensor_accessor<float, 2>(t)[i][j].
#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/result.h>

#include <type_traits>

namespace executorch::extension {

template <typename T, ssize_t N>
class TensorAccessor {
 public:
  aten::SizesType size(ssize_t i) const {
    ET_CHECK_MSG(i >= 0 && i < N, "dimension %zd is not in 0 to %zd", i, N - 1);
    return sizes_[i];
  }
  aten::StridesType stride(ssize_t i) const {
    ET_CHECK_MSG(i >= 0 && i < N, "dimension %zd is not in 0 to %zd", i, N - 1);
    return strides_[i];
  }
  // An accessor of one dimension less, or the element.
  decltype(auto) operator[](ssize_t i) const {
    if constexpr (N == 1) {
      return static_cast<T&>(data_[strides_[0] * i]);
    } else {
      return TensorAccessor<T, N - 1>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
    }
  }

 private:
  TensorAccessor(T* data, const aten::SizesType* sizes, const aten::StridesType* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  template <typename, ssize_t>
  friend class TensorAccessor;
  template <typename U, ssize_t M>
  friend runtime::Result<TensorAccessor<U, M>> make_tensor_accessor(const aten::Tensor& tensor);

  T* data_;
  const aten::SizesType* sizes_;
  const aten::StridesType* strides_;
};

// InvalidArgument for another rank or an element of another size, NotSupported for a tensor that is
// not in row-major order.
template <typename T, ssize_t N>
runtime::Result<TensorAccessor<T, N>> make_tensor_accessor(const aten::Tensor& tensor) {
  static_assert(N > 0, "read the element of a tensor without dimensions by const_data_ptr<T>()");
  ET_CHECK_OR_RETURN_ERROR(tensor.dim() == N, InvalidArgument, "%zd dimensions, not %zd",
                           tensor.dim(), static_cast<ssize_t>(N));
  ET_CHECK_OR_RETURN_ERROR(tensor.element_size() == static_cast<ssize_t>(sizeof(T)),
                           InvalidArgument, "an element has %zd bytes, not %zu",
                           tensor.element_size(), sizeof(T));
  ET_CHECK_OR_RETURN_ERROR(runtime::is_contiguous_dim_order(tensor.dim_order().data(), N),
                           NotSupported, "the tensor is not in row-major order");
  return TensorAccessor<T, N>(tensor.mutable_data_ptr<std::remove_const_t<T>>(),
                              tensor.sizes().data(), tensor.strides().data());
}

}  // namespace executorch::extension
