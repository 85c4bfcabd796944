// Inner loops on complex numbers: pairs of floats, real part first.
#pragma once

#include <cstddef>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

struct ComplexLoops {
  // out = a + factor * b; n counts floats.
  void (*add)(const float* a, const float* b, float factor, size_t n, float* out);
  // out = a * b and out = |in|; n counts pairs.
  void (*multiply)(const float* a, const float* b, size_t n, float* out);
  void (*abs)(const float* in, size_t n, float* out);
};

RL_LOOPS(ComplexLoops, complex_loops)

}  // namespace rushlight::kernels
