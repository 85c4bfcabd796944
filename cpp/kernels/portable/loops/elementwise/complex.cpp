#include "rushlight/kernels/portable/loops/elementwise/complex.h"

#include <math.h>

namespace rushlight::kernels::RL_ISA {
namespace {

void add(const float* a, const float* b, float factor, size_t n, float* out) {
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) out[i] = a[i] + factor * b[i];
}

void multiply(const float* a, const float* b, size_t n, float* out) {
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) {
    const float re = a[2 * i] * b[2 * i] - a[2 * i + 1] * b[2 * i + 1];
    const float im = a[2 * i] * b[2 * i + 1] + a[2 * i + 1] * b[2 * i];
    out[2 * i] = re;
    out[2 * i + 1] = im;
  }
}

void abs(const float* in, size_t n, float* out) {
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) {
    // In double, squares of floats neither overflow nor underflow; hypot() is slower.
    const double re = in[2 * i];
    const double im = in[2 * i + 1];
    const float size = static_cast<float>(sqrt(re * re + im * im));
    const bool infinite = fabsf(in[2 * i]) == INFINITY || fabsf(in[2 * i + 1]) == INFINITY;
    out[i] = infinite ? INFINITY : size;
  }
}

}  // namespace

const ComplexLoops complex_loops = {add, multiply, abs};

}  // namespace rushlight::kernels::RL_ISA
