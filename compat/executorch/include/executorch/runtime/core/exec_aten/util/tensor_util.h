// Checks of tensors, and what changes their sizes and data.
//
// tensor_* and tensors_* return false after a line for the log; ET_CHECK_* end the program;
// ET_KERNEL_CHECK fails a kernel's context and returns.
#pragma once

#include <executorch/runtime/core/array_ref.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/exec_aten/util/kernel_checks.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_dimension_limit.h>
#include <executorch/runtime/core/exec_aten/util/tensor_shape_to_c_string.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/platform/assert.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>

#define ET_MIN2(a, b) (std::min(a, b))
#define ET_MIN3(a, b, c) (std::min(a, std::min(b, c)))
#define ET_NORMALIZE_IX(index, bound) ((index) < 0 ? (index) + (bound) : (index))
#define ET_CHECK_VALID_IX(index, bound)                                                            \
  ET_CHECK_MSG((index) >= -static_cast<int64_t>(bound) && (index) < static_cast<int64_t>(bound),   \
               "index %" PRId64 " is not in %" PRId64 " to %" PRId64, static_cast<int64_t>(index), \
               -static_cast<int64_t>(bound), static_cast<int64_t>(bound) - 1)
#define ET_CHECK_VALID_DIM(dim, bound) ET_CHECK_VALID_IX(dim, bound)
#define ET_CHECK_NON_ZERO_DIM_SIZE(dim, tensor)                          \
  ET_CHECK_MSG((tensor).size(ET_NORMALIZE_IX(dim, (tensor).dim())) != 0, \
               "the tensor has no elements along a dimension")

#define ET_CHECK_SAME_SHAPE2(a, b) \
  ET_CHECK_MSG(::executorch::runtime::tensors_have_same_shape(a, b), "shapes differ")
#define ET_CHECK_SAME_SHAPE3(a, b, c) \
  ET_CHECK_MSG(::executorch::runtime::tensors_have_same_shape(a, b, c), "shapes differ")
#define ET_CHECK_SAME_DTYPE2(a, b) \
  ET_CHECK_MSG(::executorch::runtime::tensors_have_same_dtype(a, b), "dtypes differ")
#define ET_CHECK_SAME_DTYPE3(a, b, c) \
  ET_CHECK_MSG(::executorch::runtime::tensors_have_same_dtype(a, b, c), "dtypes differ")
#define ET_CHECK_SAME_SHAPE_AND_DTYPE2(a, b)                                   \
  ET_CHECK_MSG(::executorch::runtime::tensors_have_same_shape_and_dtype(a, b), \
               "shapes or dtypes differ")
#define ET_CHECK_SAME_SHAPE_AND_DTYPE3(a, b, c)                                   \
  ET_CHECK_MSG(::executorch::runtime::tensors_have_same_shape_and_dtype(a, b, c), \
               "shapes or dtypes differ")
#define ET_CHECK_CONTIGUOUS(a) \
  ET_CHECK_MSG(::executorch::runtime::tensor_is_contiguous(a), "the tensor is not contiguous")
#define ET_CHECK_SAME_STRIDES2(a, b) \
  ET_CHECK_MSG(::executorch::runtime::tensors_have_same_strides(a, b), "strides differ")
#define ET_CHECK_SAME_STRIDES3(a, b, c) \
  ET_CHECK_MSG(::executorch::runtime::tensors_have_same_strides(a, b, c), "strides differ")
#define ET_CHECK_DEFAULT_OR_CHANNELSLAST_DIMORDER(tensor)                                   \
  ET_CHECK_MSG(::executorch::runtime::tensor_is_default_or_channels_last_dim_order(tensor), \
               "the dim order is neither contiguous nor channels-last")
#define ET_LOG_AND_RETURN_IF_FALSE(condition) ET_CHECK_OR_RETURN_FALSE(condition, " ")
#define ET_LOG_MSG_AND_RETURN_IF_FALSE ET_CHECK_OR_RETURN_FALSE

#define ET_EXTRACT_SCALAR_TENSOR(tensor_, value_)                                \
  ET_CHECK_MSG(::executorch::runtime::extract_scalar_tensor(tensor_, &(value_)), \
               #tensor_ " has more than one element, another type, or is out of range")

namespace executorch::runtime {

inline bool dim_is_valid(int64_t dim, int64_t bound) {
  ET_CHECK_OR_RETURN_FALSE(dim >= -bound && dim < bound,
                           "dimension %" PRId64 " is not in %" PRId64 " to %" PRId64, dim, -bound,
                           bound - 1);
  return true;
}
inline ssize_t nonzero_dim(const aten::Tensor& t) { return t.dim() == 0 ? 1 : t.dim(); }
inline ssize_t nonempty_size(const aten::Tensor& t, ssize_t dim) {
  return t.dim() == 0 ? 1 : t.size(dim);
}

// What a tensor's element type must be.
#define ET_TYPE_TEST_(name_, test_)                                                 \
  inline bool name_(aten::Tensor t) {                                               \
    ET_CHECK_OR_RETURN_FALSE(test_, "the tensor is %s", toString(t.scalar_type())); \
    return true;                                                                    \
  }
ET_TYPE_TEST_(tensor_is_bool_type, t.scalar_type() == ScalarType::Bool)
ET_TYPE_TEST_(tensor_is_floating_type, isFloatingType(t.scalar_type()))
ET_TYPE_TEST_(tensor_is_real_type, isRealType(t.scalar_type()))
ET_TYPE_TEST_(tensor_is_realh_type, isRealHType(t.scalar_type()))
ET_TYPE_TEST_(tensor_is_realhb_type, isRealHBType(t.scalar_type()))
ET_TYPE_TEST_(tensor_is_realhbf16_type, isRealHBF16Type(t.scalar_type()))
ET_TYPE_TEST_(tensor_is_realhbbf16_type, isRealHBBF16Type(t.scalar_type()))
ET_TYPE_TEST_(tensor_is_complex_type, isComplexType(t.scalar_type()))
ET_TYPE_TEST_(tensor_is_bits_type, isBitsType(t.scalar_type()))
#undef ET_TYPE_TEST_
inline bool tensor_is_integral_type(aten::Tensor t, bool includeBool = false) {
  ET_CHECK_OR_RETURN_FALSE(isIntegralType(t.scalar_type(), includeBool), "the tensor is %s",
                           toString(t.scalar_type()));
  return true;
}
template <typename... Types>
bool tensor_is_type(aten::Tensor t, ScalarType first, Types... others) {
  const bool is_one = ((t.scalar_type() == first) || ... || (t.scalar_type() == others));
  ET_CHECK_OR_RETURN_FALSE(is_one, "the tensor is %s, not %s", toString(t.scalar_type()),
                           toString(first));
  return true;
}
inline bool tensor_can_cast_to(aten::Tensor t, ScalarType type) {
  ET_CHECK_OR_RETURN_FALSE(canCast(t.scalar_type(), type), "%s cannot be cast to %s",
                           toString(t.scalar_type()), toString(type));
  return true;
}

// What a tensor's rank and sizes must be.
inline bool tensor_is_rank(aten::Tensor t, size_t rank) {
  ET_CHECK_OR_RETURN_FALSE(static_cast<size_t>(t.dim()) == rank, "%zd dimensions, not %zu", t.dim(),
                           rank);
  return true;
}
inline bool tensor_has_rank_greater_or_equal_to(aten::Tensor t, size_t rank) {
  ET_CHECK_OR_RETURN_FALSE(static_cast<size_t>(t.dim()) >= rank, "%zd dimensions, not %zu or more",
                           t.dim(), rank);
  return true;
}
inline bool tensor_has_rank_smaller_or_equal_to(aten::Tensor t, size_t rank) {
  ET_CHECK_OR_RETURN_FALSE(static_cast<size_t>(t.dim()) <= rank, "%zd dimensions, not %zu or fewer",
                           t.dim(), rank);
  return true;
}
inline bool tensor_has_dim(aten::Tensor t, int64_t dim) {
  return dim_is_valid(dim, nonzero_dim(t));
}
inline bool tensor_has_non_empty_dim(aten::Tensor t, int64_t dim) {
  if (!tensor_has_dim(t, dim)) return false;
  ET_CHECK_OR_RETURN_FALSE(nonempty_size(t, ET_NORMALIZE_IX(dim, t.dim())) != 0,
                           "the tensor has no elements along a dimension");
  return true;
}
inline bool tensor_dim_has_index(aten::Tensor t, int64_t dim, int64_t index) {
  ET_CHECK(t.dim() != 0);
  return dim_is_valid(index, t.size(ET_NORMALIZE_IX(dim, t.dim())));
}
inline bool tensor_is_scalar(aten::Tensor t) { return t.dim() == 0 && t.numel() == 1; }
inline bool tensor_has_expected_size(aten::Tensor t, aten::ArrayRef<aten::SizesType> sizes) {
  ET_CHECK_OR_RETURN_FALSE(t.sizes() == sizes, "the tensor has other sizes");
  return true;
}
inline bool tensor_is_contiguous(aten::Tensor t) {
  aten::StridesType stride = 1;
  for (ssize_t i = t.dim(); i-- > 0;) {
    ET_CHECK_OR_RETURN_FALSE(t.size(i) == 1 || t.numel() == 0 || t.strides()[i] == stride,
                             "the tensor is not contiguous");
    stride *= static_cast<aten::StridesType>(t.size(i));
  }
  return true;
}

// What two or three tensors must share.
inline bool tensors_have_same_dtype(aten::Tensor a, aten::Tensor b) {
  ET_CHECK_OR_RETURN_FALSE(a.scalar_type() == b.scalar_type(), "dtypes %s and %s differ",
                           toString(a.scalar_type()), toString(b.scalar_type()));
  return true;
}
inline bool tensors_have_same_rank(aten::Tensor a, aten::Tensor b) {
  ET_CHECK_OR_RETURN_FALSE(a.dim() == b.dim(), "%zd and %zd dimensions", a.dim(), b.dim());
  return true;
}
// Tensors of one element have the same shape, whatever their rank.
inline bool tensors_have_same_shape(aten::Tensor a, aten::Tensor b) {
  if (a.numel() == 1 && b.numel() == 1) return true;
  ET_CHECK_OR_RETURN_FALSE(
      a.sizes() == b.sizes(), "shapes %s and %s differ",
      tensor_shape_to_c_string(Span<const int32_t>(a.sizes().data(), a.sizes().size())).data(),
      tensor_shape_to_c_string(Span<const int32_t>(b.sizes().data(), b.sizes().size())).data());
  return true;
}
inline bool tensors_have_same_strides(aten::Tensor a, aten::Tensor b) {
  ET_CHECK_OR_RETURN_FALSE(a.strides() == b.strides(), "strides differ");
  return true;
}
inline bool tensors_have_same_shape_and_dtype(aten::Tensor a, aten::Tensor b) {
  return tensors_have_same_shape(a, b) && tensors_have_same_dtype(a, b);
}
#define ET_OF_THREE_(name_)                                           \
  inline bool name_(aten::Tensor a, aten::Tensor b, aten::Tensor c) { \
    return name_(a, b) && name_(b, c);                                \
  }
ET_OF_THREE_(tensors_have_same_dtype)
ET_OF_THREE_(tensors_have_same_shape)
ET_OF_THREE_(tensors_have_same_strides)
ET_OF_THREE_(tensors_have_same_shape_and_dtype)
#undef ET_OF_THREE_
inline bool tensors_have_same_size_at_dims(aten::Tensor a, size_t dim_a, aten::Tensor b,
                                           size_t dim_b) {
  ET_CHECK_OR_RETURN_FALSE(
      dim_a < static_cast<size_t>(a.dim()) && dim_b < static_cast<size_t>(b.dim()),
      "a tensor has fewer dimensions");
  const ssize_t size_a = a.size(static_cast<ssize_t>(dim_a));
  const ssize_t size_b = b.size(static_cast<ssize_t>(dim_b));
  ET_CHECK_OR_RETURN_FALSE(size_a == size_b, "sizes %zd and %zd differ", size_a, size_b);
  return true;
}

// Dim orders.
inline bool tensor_has_valid_dim_order(aten::Tensor t) {
  return validate_dim_order(t.dim_order().data(), t.dim_order().size());
}
inline bool tensor_is_default_dim_order(aten::Tensor t) {
  return is_contiguous_dim_order(t.dim_order().data(), t.dim_order().size());
}
inline bool tensor_is_channels_last_dim_order(aten::Tensor t) {
  return is_channels_last_dim_order(t.dim_order().data(), t.dim_order().size());
}
inline bool tensor_is_default_or_channels_last_dim_order(aten::Tensor t) {
  return tensor_is_default_dim_order(t) || tensor_is_channels_last_dim_order(t);
}
inline bool tensors_have_same_dim_order(const aten::ArrayRef<aten::Tensor> tensors) {
  bool all_default = true;
  bool all_channels_last = true;
  for (const aten::Tensor& t : tensors) {
    all_default = all_default && tensor_is_default_dim_order(t);
    all_channels_last = all_channels_last && tensor_is_channels_last_dim_order(t);
  }
  ET_CHECK_OR_RETURN_FALSE(all_default || all_channels_last, "dim orders differ");
  return true;
}
template <typename... Tensors>
bool tensors_have_same_dim_order(const aten::Tensor& a, const aten::Tensor& b,
                                 const Tensors&... others) {
  const aten::Tensor all[] = {a, b, others...};
  return tensors_have_same_dim_order(aten::ArrayRef<aten::Tensor>(all));
}
ET_NODISCARD inline Error get_dim_order(const aten::Tensor& t, aten::DimOrderType* to,
                                        size_t size) {
  ET_CHECK_OR_RETURN_ERROR(to != nullptr && size == t.dim_order().size(), InvalidArgument,
                           "the tensor has %zd dimensions, not %zu", t.dim(), size);
  std::copy(t.dim_order().begin(), t.dim_order().end(), to);
  return Error::Ok;
}

// Elements before and after a dimension, and places of elements in row-major order.
inline size_t getLeadingDims(const aten::Tensor& t, int64_t dim) {
  ET_CHECK_MSG(dim >= 0 && dim <= t.dim(), "there is no dimension %" PRId64, dim);
  size_t n = 1;
  for (ssize_t i = 0; i < dim; ++i) n *= static_cast<size_t>(t.size(i));
  return n;
}
inline size_t getTrailingDims(const aten::Tensor& t, int64_t dim) {
  ET_CHECK_MSG(dim >= -1 && dim < t.dim(), "there is no dimension %" PRId64, dim);
  size_t n = 1;
  for (ssize_t i = static_cast<ssize_t>(dim) + 1; i < t.dim(); ++i) {
    n *= static_cast<size_t>(t.size(i));
  }
  return n;
}
inline size_t coordinateToIndex(const aten::Tensor& t, const size_t* coordinate) {
  size_t index = 0;
  for (ssize_t i = 0; i < t.dim(); ++i)
    index = index * static_cast<size_t>(t.size(i)) + coordinate[i];
  return index;
}
inline void memoizeTrailingDims(const aten::Tensor& t, size_t trailing[kTensorDimensionLimit]) {
  for (ssize_t i = 0; i < t.dim(); ++i) trailing[i] = getTrailingDims(t, i);
}
inline size_t coordinateToIndexWithTrailingDimsMemo(const aten::Tensor& t, const size_t* coordinate,
                                                    const size_t trailing[kTensorDimensionLimit]) {
  size_t index = 0;
  for (ssize_t i = 0; i < t.dim(); ++i) index += coordinate[i] * trailing[i];
  return index;
}
inline void indexToCoordinate(const aten::Tensor& t, size_t index, size_t* coordinate) {
  ET_CHECK(index < static_cast<size_t>(t.numel()));
  for (ssize_t i = t.dim(); i-- > 0;) {
    coordinate[i] = index % static_cast<size_t>(t.size(i));
    index /= static_cast<size_t>(t.size(i));
  }
}
inline size_t calculate_linear_index(const aten::SizesType* coordinate,
                                     const aten::StridesType* strides, size_t dims) {
  size_t index = 0;
  for (size_t i = 0; i < dims; ++i) {
    index += static_cast<size_t>(coordinate[i]) * static_cast<size_t>(strides[i]);
  }
  return index;
}

// The only element of a tensor as a T. False if it has more elements, is of another kind, or does
// not fit.
template <typename T>
bool extract_scalar_tensor(aten::Tensor t, T* value) {
  if (t.numel() != 1) return false;
  const ScalarType type = t.scalar_type();
  if constexpr (std::is_same_v<T, bool>) {
    if (type != ScalarType::Bool) return false;
    *value = t.const_data_ptr<bool>()[0];
    return true;
  } else if constexpr (std::is_integral_v<T>) {
#define ET_TRY_TYPE_(ctype, name)                                                   \
  if (type == ScalarType::name) {                                                   \
    const auto found = static_cast<int64_t>(t.const_data_ptr<ctype>()[0]);          \
    *value = static_cast<T>(found);                                                 \
    return static_cast<int64_t>(*value) == found && (found < 0) == (*value < T(0)); \
  }
    ET_FORALL_INT_TYPES(ET_TRY_TYPE_)
#undef ET_TRY_TYPE_
    return false;
  } else {
#define ET_TRY_TYPE_(ctype, name)                                                              \
  if (type == ScalarType::name) {                                                              \
    const double found = ::executorch::runtime::convert<double>(t.const_data_ptr<ctype>()[0]); \
    const auto limit = static_cast<double>(std::numeric_limits<T>::max());                     \
    if (std::isfinite(found) && std::fabs(found) > limit) return false;                        \
    *value = static_cast<T>(found);                                                            \
    return true;                                                                               \
  }
    ET_FORALL_REALHBF16_TYPES(ET_TRY_TYPE_)
#undef ET_TRY_TYPE_
    return false;
  }
}

namespace internal {

ET_NODISCARD inline Error resize_tensor_impl(aten::TensorImpl* impl,
                                             aten::ArrayRef<aten::SizesType> sizes) {
  ::rushlight::Tensor& tensor = impl->rushlight();
  int32_t strides[::rushlight::kMaxRank];  // for a tensor that was made without
  const bool bare = tensor.strides == nullptr;
  if (bare) tensor.strides = strides;
  const Error error = tensor.resize({sizes.data(), sizes.size()}).code();
  if (bare) tensor.strides = nullptr;
  if (error != Error::Ok) {
    ET_LOG(Error, "a tensor of %zd dimensions with room for %" PRId64 " elements cannot become %s",
           impl->dim(), tensor.capacity,
           tensor_shape_to_c_string(Span<const int32_t>(sizes.data(), sizes.size())).data());
  }
  return error;
}
ET_NODISCARD inline Error set_tensor_data(const aten::Tensor& t, void* data, size_t size) {
  ET_CHECK_OR_RETURN_ERROR(size >= t.nbytes(), InvalidArgument,
                           "%zu bytes are too few for a tensor of %zu", size, t.nbytes());
  t.unsafeGetTensorImpl()->set_data(data);
  return Error::Ok;
}
ET_NODISCARD inline Error share_tensor_data(const aten::Tensor& to, const aten::Tensor& from) {
  ET_CHECK_OR_RETURN_ERROR(to.nbytes() == from.nbytes() && from.const_data_ptr() != nullptr,
                           InvalidArgument, "the tensors have %zu and %zu bytes", to.nbytes(),
                           from.nbytes());
  to.unsafeGetTensorImpl()->set_data(from.mutable_data_ptr());
  return Error::Ok;
}
ET_NODISCARD inline Error copy_tensor_data(const aten::Tensor& to, const aten::Tensor& from) {
  ET_CHECK_OR_RETURN_ERROR(to.nbytes() == from.nbytes() && to.const_data_ptr() != nullptr,
                           InvalidArgument, "the tensors have %zu and %zu bytes", to.nbytes(),
                           from.nbytes());
  if (to.nbytes() > 0) {
    std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
  }
  return Error::Ok;
}
inline void reset_data_ptr(const aten::Tensor& t) { t.unsafeGetTensorImpl()->set_data(nullptr); }

class TensorResizerFriend final {
 public:
  ET_NODISCARD static Error resize_tensor_impl(aten::TensorImpl* impl,
                                               aten::ArrayRef<aten::SizesType> sizes) {
    return internal::resize_tensor_impl(impl, sizes);
  }
};

}  // namespace internal

// NotSupported for another rank, for a tensor whose sizes are fixed, and for more elements than it
// has room for.
ET_NODISCARD inline Error resize_tensor(aten::Tensor t, aten::ArrayRef<aten::SizesType> sizes) {
  return internal::resize_tensor_impl(t.unsafeGetTensorImpl(), sizes);
}
template <typename T, typename = std::enable_if_t<!std::is_same_v<aten::SizesType, T>>>
ET_NODISCARD Error resize_tensor(aten::Tensor t, aten::ArrayRef<T> sizes) {
  ET_CHECK_OR_RETURN_ERROR(sizes.size() <= kTensorDimensionLimit, NotSupported,
                           "%zu dimensions, but a tensor has at most %zu", sizes.size(),
                           kTensorDimensionLimit);
  aten::SizesType narrow[kTensorDimensionLimit] = {};
  for (size_t i = 0; i < sizes.size(); ++i) {
    narrow[i] = static_cast<aten::SizesType>(sizes[i]);
    ET_CHECK_OR_RETURN_ERROR(static_cast<T>(narrow[i]) == sizes[i], NotSupported,
                             "a size does not fit 32 bits");
  }
  return resize_tensor(t, aten::ArrayRef<aten::SizesType>(narrow, sizes.size()));
}
ET_DEPRECATED inline void resize(aten::Tensor t, aten::ArrayRef<aten::SizesType> sizes) {
  ET_CHECK_MSG(resize_tensor(t, sizes) == Error::Ok, "the tensor cannot be resized");
}

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::calculate_linear_index;
using ::executorch::runtime::coordinateToIndex;
using ::executorch::runtime::dim_is_valid;
using ::executorch::runtime::extract_scalar_tensor;
using ::executorch::runtime::get_dim_order;
using ::executorch::runtime::getLeadingDims;
using ::executorch::runtime::getTrailingDims;
using ::executorch::runtime::indexToCoordinate;
using ::executorch::runtime::kTensorDimensionLimit;
using ::executorch::runtime::nonempty_size;
using ::executorch::runtime::nonzero_dim;
using ::executorch::runtime::resize;
using ::executorch::runtime::resize_tensor;
using ::executorch::runtime::tensor_can_cast_to;
using ::executorch::runtime::tensor_dim_has_index;
using ::executorch::runtime::tensor_has_dim;
using ::executorch::runtime::tensor_has_expected_size;
using ::executorch::runtime::tensor_has_non_empty_dim;
using ::executorch::runtime::tensor_has_rank_greater_or_equal_to;
using ::executorch::runtime::tensor_has_rank_smaller_or_equal_to;
using ::executorch::runtime::tensor_has_valid_dim_order;
using ::executorch::runtime::tensor_is_bits_type;
using ::executorch::runtime::tensor_is_bool_type;
using ::executorch::runtime::tensor_is_complex_type;
using ::executorch::runtime::tensor_is_contiguous;
using ::executorch::runtime::tensor_is_default_dim_order;
using ::executorch::runtime::tensor_is_default_or_channels_last_dim_order;
using ::executorch::runtime::tensor_is_floating_type;
using ::executorch::runtime::tensor_is_integral_type;
using ::executorch::runtime::tensor_is_rank;
using ::executorch::runtime::tensor_is_real_type;
using ::executorch::runtime::tensor_is_realh_type;
using ::executorch::runtime::tensor_is_realhb_type;
using ::executorch::runtime::tensor_is_scalar;
using ::executorch::runtime::tensor_is_type;
using ::executorch::runtime::tensors_have_same_dim_order;
using ::executorch::runtime::tensors_have_same_dtype;
using ::executorch::runtime::tensors_have_same_rank;
using ::executorch::runtime::tensors_have_same_shape;
using ::executorch::runtime::tensors_have_same_shape_and_dtype;
using ::executorch::runtime::tensors_have_same_size_at_dims;
using ::executorch::runtime::tensors_have_same_strides;
namespace internal {
using ::executorch::runtime::internal::copy_tensor_data;
using ::executorch::runtime::internal::reset_data_ptr;
using ::executorch::runtime::internal::resize_tensor_impl;
using ::executorch::runtime::internal::set_tensor_data;
using ::executorch::runtime::internal::share_tensor_data;
}  // namespace internal
}  // namespace torch::executor
