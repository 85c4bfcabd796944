// Reading index tensors: int64 or int32 elements, checked against the size they index.
#pragma once

#include <cstdint>

#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/loops/reduction/fold.h"

namespace rushlight::kernels {

// Returns InvalidArgument unless `index` (called `name` in the message) is int64 or int32, or
// empty.
Status check_index_type(KernelContext& ctx, const char* name, const Tensor& index);

// The index at an offset in elements. The type must have been checked.
inline int64_t index_at(const Tensor& index, int64_t offset) {
  return index.dtype == DType::Int64 ? index.as<int64_t>()[offset] : index.as<int32_t>()[offset];
}

// The error for an index that is out of range. `lowest` is 0, or -size if negative indices count
// from the end.
Status index_out_of_range(KernelContext& ctx, int64_t index, size_t dim, int64_t size,
                          int64_t lowest);

// Returns the error of `index_out_of_range` unless all indices are in range. Operators that write
// at indexed positions call this before they write anything.
Status check_indices(KernelContext& ctx, const Tensor& index, size_t dim, int64_t size,
                     int64_t lowest);

// Returns nullptr for a type that the fold does not support.
FoldFn fold_elements(Fold fold, DType dtype);

}  // namespace rushlight::kernels
