// Inner loops of reductions over contiguous elements: of a row into one accumulator, or of a row,
// elementwise, into a row of accumulators. Accumulators are double for floating inputs, and int64
// for integers and bools, so that long sums stay exact enough.
#pragma once

#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/kernels/portable/loops/elementwise/convert.h"

namespace rushlight::kernels {

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

// The loops of one operation: nullptr for a type that it has none for, or that this build leaves
// out (kernel/selection.h). The columns of double and int64 add up accumulators, too.
struct ReduceLoops {
  ReduceRowFn row[kComputeTypes];
  ReduceColumnFn column[kComputeTypes];
};
struct ArgLoops {
  ArgRowFn row[kComputeTypes];
  ArgColumnFn column[kComputeTypes];
};
struct CumulateLoops {
  CumulateFn row[kComputeTypes];  // `out` has the accumulator's type
  CumulateFn column[kComputeTypes];
};

// An object for each operation, so that a program links those that its kernels name.
RL_LOOPS(ReduceLoops, reduce_sum)
RL_LOOPS(ReduceLoops, reduce_prod)
RL_LOOPS(ReduceLoops, reduce_max)
RL_LOOPS(ReduceLoops, reduce_min)
RL_LOOPS(ReduceLoops, reduce_squared_deviation)
RL_LOOPS(ArgLoops, arg_max)
RL_LOOPS(ArgLoops, arg_min)
RL_LOOPS(CumulateLoops, cumulate_sum)

}  // namespace rushlight::kernels
