// Inner loops of the fast Fourier transform: one pass of a Stockham transform over complex numbers
// whose real and imaginary parts are in separate arrays.
//
// The input of a pass of radix r is `s` interleaved sequences of length r * m; the output is r * s
// sequences of length m: y[q + s * (r * p + k)] = w^(p * k) * sum over j of x[q + s * (p + m * j)]
// * v^(j * k), where w and v are the roots of unity of orders r * m and r. This is the autosort
// form (O. Fialka and others): the result of the last pass is in order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

struct FftPass {
  const float* x_re;
  const float* x_im;
  float* y_re;
  float* y_im;
  int64_t m;
  int64_t s;
  // Roots of unity exp(-2 pi i k / order); w^(p * k) is at index p * k * stride.
  const float* w_re;
  const float* w_im;
  int64_t stride;
};

// Rows of `n` complex numbers and their lanes (fft_plan.h).
struct FftRows {
  float* const* rows;
  int64_t n;
  int64_t lanes;
  float* re;
  float* im;
};

// The spectrum of a real row of 2 * h elements, and the transform of its h pairs as complex
// numbers. One replaces the other in the same memory. Element h of the spectrum is real, and is
// stored as the imaginary part of element 0.
struct FftHalves {
  float* re;
  float* im;
  int64_t h;
  int64_t lanes;
  const float* turn_re;  // exp(-2 pi i k / (2 * h))
  const float* turn_im;
};

struct FftLoops {
  void (*radix2)(const FftPass& pass);
  void (*radix3)(const FftPass& pass);
  void (*radix4)(const FftPass& pass);
  void (*radix5)(const FftPass& pass);
  void (*radix7)(const FftPass& pass);
  void (*radix11)(const FftPass& pass);
  void (*radix13)(const FftPass& pass);
  void (*read_rows)(const FftRows& rows);
  void (*write_rows)(const FftRows& rows, float factor);
  void (*to_spectrum)(const FftHalves& halves);
  void (*from_spectrum)(const FftHalves& halves);  // gives twice the values
};

RL_LOOPS(FftLoops, fft_loops)

}  // namespace rushlight::kernels
