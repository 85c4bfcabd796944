// Inner loops of the fast Fourier transform: one pass of a Stockham transform over complex numbers
// whose real and imaginary parts lie apart.
//
// A pass of radix r makes from sequences of length r * m, `s` of them interleaved, r * s sequences
// of length m: y[q + s * (r * p + k)] = w^(p * k) * sum over j of x[q + s * (p + m * j)] * v^(j *
// k) with w and v the roots of unity of orders r * m and r (O. Fialka's and others' autosort form:
// the result of the last pass is in order).
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernels/portable/loops/dispatch.h"

namespace rushlight::kernels {

struct FftPass {
  const float* x_re;
  const float* x_im;
  float* y_re;
  float* y_im;
  int64_t m;
  int64_t s;
  // Roots of unity exp(-2 pi i k / order); w^(p * k) is number p * k * step.
  const float* w_re;
  const float* w_im;
  int64_t step;
};

struct FftLoops {
  void (*radix2)(const FftPass& pass);
  void (*radix3)(const FftPass& pass);
  void (*radix4)(const FftPass& pass);
  void (*radix5)(const FftPass& pass);
  void (*radix7)(const FftPass& pass);
  void (*radix11)(const FftPass& pass);
  void (*radix13)(const FftPass& pass);
};

RL_LOOPS(FftLoops, fft_loops)

}  // namespace rushlight::kernels
