// Dim orders: the dimensions of a tensor from outermost to innermost.
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/util/tensor_dimension_limit.h>

#include <cstddef>
#include <cstdint>

namespace executorch::runtime {

template <typename DimOrderType>
bool validate_dim_order(const DimOrderType* dim_order, size_t dims) {
  if (dims > kTensorDimensionLimit) return false;
  uint32_t seen = 0;
  for (size_t i = 0; i < dims; ++i) {
    if (static_cast<size_t>(dim_order[i]) >= dims) return false;
    seen |= uint32_t{1} << dim_order[i];
  }
  return seen == (uint32_t{1} << dims) - 1;
}

template <typename DimOrderType>
bool is_contiguous_dim_order(const DimOrderType* dim_order, size_t dims) {
  for (size_t i = 0; i < dims; ++i) {
    if (static_cast<size_t>(dim_order[i]) != i) return false;
  }
  return true;
}

// 0, 2, 3, 1, or the same with one dimension more.
template <typename DimOrderType>
bool is_channels_last_dim_order(const DimOrderType* dim_order, size_t dims) {
  if (dims != 4 && dims != 5) return false;
  if (dim_order[0] != 0 || dim_order[dims - 1] != 1) return false;
  for (size_t i = 1; i + 1 < dims; ++i) {
    if (static_cast<size_t>(dim_order[i]) != i + 1) return false;
  }
  return true;
}

// A size of 0 counts as 1, so that strides stay apart.
template <typename SizesType, typename DimOrderType, typename StridesType>
void dim_order_to_stride_nocheck(const SizesType* sizes, const DimOrderType* dim_order, size_t dims,
                                 StridesType* strides) {
  StridesType stride = 1;
  for (size_t i = dims; i-- > 0;) {
    strides[dim_order[i]] = stride;
    if (sizes[dim_order[i]] != 0) stride *= static_cast<StridesType>(sizes[dim_order[i]]);
  }
}

template <typename SizesType, typename DimOrderType, typename StridesType>
ET_NODISCARD Error dim_order_to_stride(const SizesType* sizes, const DimOrderType* dim_order,
                                       size_t dims, StridesType* strides) {
  ET_CHECK_OR_RETURN_ERROR(validate_dim_order(dim_order, dims), InvalidArgument,
                           "the dim order is no permutation of 0 to %zu", dims - 1);
  dim_order_to_stride_nocheck(sizes, dim_order, dims, strides);
  return Error::Ok;
}

// Sorts the dimensions by their strides, longest first; equal ones keep their order.
template <typename DimOrderType, typename StridesType>
ET_NODISCARD Error stride_to_dim_order(const StridesType* strides, size_t dims,
                                       DimOrderType* dim_order) {
  ET_CHECK_OR_RETURN_ERROR(dim_order != nullptr, MemoryAllocationFailed,
                           "there is no memory for the dim order");
  ET_CHECK_OR_RETURN_ERROR(dims <= kTensorDimensionLimit, NotSupported,
                           "%zu dimensions, but a tensor has at most %zu", dims,
                           kTensorDimensionLimit);
  for (size_t i = 0; i < dims; ++i) {
    size_t at = i;
    for (; at > 0 && strides[dim_order[at - 1]] < strides[i]; --at) {
      dim_order[at] = dim_order[at - 1];
    }
    dim_order[at] = static_cast<DimOrderType>(i);
  }
  return Error::Ok;
}

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::dim_order_to_stride;
using ::executorch::runtime::dim_order_to_stride_nocheck;
using ::executorch::runtime::is_channels_last_dim_order;
using ::executorch::runtime::is_contiguous_dim_order;
using ::executorch::runtime::stride_to_dim_order;
}  // namespace torch::executor
