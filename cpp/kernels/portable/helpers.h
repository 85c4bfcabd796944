// What every kernel file needs: checks of dimensions, shapes on the stack, optional scalars. The
// text of a shape in a message is made by core/shape_text.h.
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
  // False if the shape is full, or if `size` is negative or does not fit int32.
  bool push(int64_t size);
};

// Converts a dimension that may be negative to 0..rank-1. A 0-d tensor accepts dimension 0. Returns
// InvalidArgument if the dimension is out of range.
Status wrap_dim(KernelContext& ctx, int64_t dim, size_t rank, size_t* wrapped);

// Sets a flag for each dimension that an `int[]? dim` argument names; there are max(rank, 1) flags.
// None names all dimensions, and with `empty_is_all` an empty list does. Returns InvalidArgument if
// one is out of range or named twice.
Status wrap_dims(KernelContext& ctx, const EValue& dims, size_t rank, bool empty_is_all,
                 bool* flags);

// Reads the sizes of an `int[]` argument. Returns InvalidArgument if one is negative or there are
// too many.
Status shape_of_list(KernelContext& ctx, const EValue& list, Shape* shape);

// Return InvalidArgument unless `tensor` (called `name` in the message) has this dtype or rank.
Status check_dtype(KernelContext& ctx, const char* name, const Tensor& tensor, DType dtype);
Status check_rank(KernelContext& ctx, const char* name, const Tensor& tensor, size_t rank);

// The value of an optional scalar argument, or `otherwise` if it is None.
inline int64_t int_or(const EValue& value, int64_t otherwise) {
  return value.is_none() ? otherwise : value.to_int();
}
inline double double_or(const EValue& value, double otherwise) {
  return value.is_none() ? otherwise : value.to_double();
}

}  // namespace rushlight::kernels
