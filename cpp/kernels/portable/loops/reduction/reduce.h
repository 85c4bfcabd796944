// Inner loops of reductions over contiguous elements: of a row into one accumulator, or of a row,
// elementwise, into a row of accumulators. Accumulators are double for floating inputs, and int64
// for integers and bools, so that long sums stay exact enough.
#pragma once

#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/kernels/portable/loops/elementwise/convert.h"

namespace rushlight::kernels {

enum class ReduceOp { Sum, Prod, Max, Min, SquaredDeviation, Count };

// `x` has the type of the table's row; `acc` is double* or int64_t*. SquaredDeviation adds (x -
// mean)^2, where `mean` is one number for a row, and one for each element for columns.
using ReduceRowFn = void (*)(const void* x, size_t n, void* acc, const double* mean);
// Folds x[i] into acc[i].
using ReduceColumnFn = void (*)(const void* x, size_t n, void* acc, const double* mean);
// Returns the first position of the greatest (least) element of a row. A NaN counts as greater
// (less) than every number.
using ArgRowFn = size_t (*)(const void* x, size_t n);
// If x[i] is better than best[i] (double or int64), stores it there and stores `position` in
// index[i].
using ArgColumnFn = void (*)(const void* x, size_t n, void* best, int64_t* index, int64_t position);
// Running sums. For columns: acc[i] += x[i], out[i] = acc[i]. For a row: the same with the single
// accumulator *acc.
using CumulateFn = void (*)(const void* x, size_t n, void* acc, void* out);

struct ReduceLoops {
  ReduceRowFn row[static_cast<size_t>(ReduceOp::Count)][kComputeTypes];
  ReduceColumnFn column[static_cast<size_t>(ReduceOp::Count)][kComputeTypes];
  ArgRowFn arg_row[2][kComputeTypes];  // [0] greatest, [1] least
  ArgColumnFn arg_column[2][kComputeTypes];
  CumulateFn cumulate_row[kComputeTypes];  // `out` has the accumulator's type
  CumulateFn cumulate_column[kComputeTypes];
};

RL_LOOPS(ReduceLoops, reduce_loops)

}  // namespace rushlight::kernels
