// The inner loop of embedding bags: a sum of rows of a table.
#pragma once

#include <cstddef>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

// acc[j] += factors[r] * rows[r][j] for j < n and r < count, one row after the other. Null factors
// are all 1. Factors and acc are float, or double if the rows are double.
using BagSumFn = void (*)(const void* const* rows, size_t count, const void* factors, size_t n,
                          void* acc);

struct BagLoops {
  BagSumFn sum_float;
  BagSumFn sum_double;
  BagSumFn sum_half;
  BagSumFn sum_bfloat;
};

RL_LOOPS(BagLoops, bag_loops)

}  // namespace rushlight::kernels
