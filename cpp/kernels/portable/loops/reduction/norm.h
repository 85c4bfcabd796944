// The inner loops of all normalisations. The center is subtracted first, so that the differences of
// nearly equal numbers keep all their digits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

// y = (x - center) * scale + shift
struct Affine {
  double center = 0.0;
  double scale = 1.0;
  double shift = 0.0;
};

// In tables, [0] is float and [1] double (kF32, kF64).
struct NormLoops {
  // out[i] = y(x[i]) * weight[i] + bias[i]. Weight, bias or both may be nullptr.
  void (*row[2])(const void* x, size_t n, const Affine& affine, const void* weight,
                 const void* bias, void* out);
  // out[i] = (x[i] - center[i]) * scale[i] + shift[i]
  void (*columns[2])(const void* x, size_t n, const void* center, const void* scale,
                     const void* shift, void* out);
};

RL_LOOPS(NormLoops, norm_loops)

}  // namespace rushlight::kernels
