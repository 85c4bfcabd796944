// Inner loops of pooling: how one tap of a window changes a row of outputs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/kernels/portable/loops/elementwise/convert.h"

namespace rushlight::kernels {

// x, best and acc have the type of the table's row.

// best[i] is the greatest element so far and index[i] its position. x[i * stride], at position `at`
// + i * at_stride, replaces it if it is greater or NaN.
using PoolMaxFn = void (*)(const void* x, int64_t stride, size_t n, int32_t at, int32_t at_stride,
                           void* best, int32_t* index);
// The same for windows: folds columns[begin[i]] to columns[end[i] - 1] into best[i]. Columns are
// numbered from `first` and limited to `first` and `last`; column 0 has position `at`.
using PoolMaxWindowsFn = void (*)(const void* columns, int64_t first, int64_t last,
                                  const int32_t* begin, const int32_t* end, size_t n, int32_t at,
                                  void* best, int32_t* index);
// best[i] = the least value of the type.
using PoolStartFn = void (*)(void* best, size_t n);
// acc[i] += x[i * stride]
using PoolAddFn = void (*)(const void* x, int64_t stride, size_t n, void* acc);
// acc[i] += the sum of columns[begin[i]] to columns[end[i] - 1]. Columns are numbered from `first`
// and limited to `first` and `last`.
using PoolWindowsFn = void (*)(const void* columns, int64_t first, int64_t last,
                               const int32_t* begin, const int32_t* end, size_t n, void* acc);
// out[i] = acc[i] / (counts[i] * factor), all of one type. For integers the fraction is discarded.
using PoolDivideFn = void (*)(const void* acc, const void* counts, const void* factor, size_t n,
                              void* out);

// The rows are for kF32, kF64 and kI64.
struct PoolLoops {
  PoolMaxFn max[kComputeTypes];
  PoolMaxWindowsFn max_windows[kComputeTypes];
  PoolStartFn start[kComputeTypes];
  PoolAddFn add[kComputeTypes];
  PoolWindowsFn windows[kComputeTypes];
  PoolDivideFn divide[kComputeTypes];
};

RL_LOOPS(PoolLoops, pool_loops)

}  // namespace rushlight::kernels
