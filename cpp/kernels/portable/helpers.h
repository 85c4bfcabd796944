// What every kernel file needs: dimension checks, shapes on the stack, optional scalars. For the
// text of a shape in a message there is core/shape_text.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/evalue.h"
#include "rushlight/core/shape_text.h"
#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"

namespace rushlight::kernels {

// A shape on the stack. Functions that build one check the rank and the range of each size.
struct Shape {
  int32_t sizes[kMaxRank];
  size_t rank = 0;

  Shape() = default;
  explicit Shape(Span<const int32_t> from);
  Span<const int32_t> span() const { return {sizes, rank}; }
  // False if the shape is full or `size` is negative or does not fit int32.
  bool push(int64_t size);
};

// Turns a dimension that may be negative into 0..rank-1; a 0-d tensor has the dimension 0 as well.
// InvalidArgument if it is out of range.
Status wrap_dim(KernelContext& ctx, int64_t dim, size_t rank, size_t* wrapped);

// The dimensions that an `int[]? dim` argument names, as flags of length max(rank, 1). None and,
// with `empty_is_all`, an empty list name all. InvalidArgument if one is out of range or named
// twice.
Status wrap_dims(KernelContext& ctx, const EValue& dims, size_t rank, bool empty_is_all,
                 bool* flags);

// The sizes of an `int[]` argument. InvalidArgument if one is negative or there are too many.
Status shape_of_list(KernelContext& ctx, const EValue& list, Shape* shape);

// InvalidArgument unless `tensor` (called `name` in the message) has the given type or rank.
Status check_dtype(KernelContext& ctx, const char* name, const Tensor& tensor, DType dtype);
Status check_rank(KernelContext& ctx, const char* name, const Tensor& tensor, size_t rank);

// A value of an optional scalar argument, or what stands for None.
inline int64_t int_or(const EValue& value, int64_t otherwise) {
  return value.is_none() ? otherwise : value.to_int();
}
inline double double_or(const EValue& value, double otherwise) {
  return value.is_none() ? otherwise : value.to_double();
}

}  // namespace rushlight::kernels
