// The inner loop of embedding bags: rows of a table added up.
#pragma once

#include <cstddef>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

// acc[j] += factors[r] * rows[r][j] for j < n and r < count, one row after the other; without
// factors for nullptr. Factors and acc are float, or double for rows of double.
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
