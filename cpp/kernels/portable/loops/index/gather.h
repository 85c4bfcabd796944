// Inner loops that sample an image at scattered positions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

// In tables, [0] is float and [1] double (kF32, kF64): the type of all elements and weights.
struct GatherLoops {
  // sums[i] += data[offsets[i]] * weights[i]. An offset below 0 means an element that is 0.
  void (*add_weighted[2])(const void* data, const int32_t* offsets, const void* weights, size_t n,
                          void* sums);
};

RL_LOOPS(GatherLoops, gather_loops)

}  // namespace rushlight::kernels
