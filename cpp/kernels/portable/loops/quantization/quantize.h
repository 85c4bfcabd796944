// Inner loops of quantization, in float or double. They are elementwise loops as in
// loops/elementwise/elementwise.h. Every operation is rounded separately, as in the reference.
#pragma once

#include "rushlight/kernels/portable/loops/elementwise/elementwise.h"

namespace rushlight::kernels {

// In tables, [0] is float and [1] double. The bounds of the result are i[1] and i[2].
struct QuantizeLoops {
  // x: round(x * d[0]) + i[0]
  ElementwiseFn by_scalar[2];
  // x, scale, zero point: round(x * (1 / scale)) + zero point
  ElementwiseFn by_channel[2];
  // x, scale, zero point: round(x * (1 / scale) + zero point)
  ElementwiseFn by_token[2];
  // x: (x - i[0]) * d[0], without bounds
  ElementwiseFn back_by_scalar[2];
  // int64 x, scale, int64 zero point: (x - zero point) * scale
  ElementwiseFn back[2];
  // The same, with a zero point of the scale's type.
  ElementwiseFn back_from_real[2];
};

RL_LOOPS(QuantizeLoops, quantize_loops)

}  // namespace rushlight::kernels
