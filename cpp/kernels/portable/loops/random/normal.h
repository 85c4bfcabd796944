// The inner loop of normal variates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

struct NormalLoops {
  // Turns blocks of 16 numbers from [0, 1) into 16 normal variates each: number k and number k + 8
  // of a block are one pair of Box and Muller's method.
  void (*fill)(float* values, size_t blocks, float mean, float std);
};

RL_LOOPS(NormalLoops, normal_loops)

}  // namespace rushlight::kernels
