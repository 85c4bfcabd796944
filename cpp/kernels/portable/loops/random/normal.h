// The inner loop of normal variates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

struct NormalLoops {
  // Converts blocks of 16 numbers from [0, 1) to 16 normal variates each, by Box and Muller's
  // method: numbers k and k + 8 of a block are a pair.
  void (*fill)(float* values, size_t blocks, float mean, float std);
};

RL_LOOPS(NormalLoops, normal_loops)

}  // namespace rushlight::kernels
