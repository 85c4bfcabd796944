// Inner loops of sampling an image at scattered places.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

// Tables: [0] float, [1] double (kF32, kF64), the type of all elements and weights.
struct GatherLoops {
  // sums[i] += data[offsets[i]] * weights[i]; an offset below 0 stands for an element that is 0.
  void (*add_weighted[2])(const void* data, const int32_t* offsets, const void* weights, size_t n,
                          void* sums);
};

RL_LOOPS(GatherLoops, gather_loops)

}  // namespace rushlight::kernels
