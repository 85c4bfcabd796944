// Inner loops of operators with two or three inputs (loops/elementwise.h).
#pragma once

#include "rushlight/kernels/portable/loops/elementwise/elementwise.h"

namespace rushlight::kernels {

enum class BinaryOp {
  // float32, float64, int64, int32
  Add,       // a + b
  AddAlpha,  // a + p * b with p = d[0] or i[0]
  Mul,
  TruncDiv,
  FloorDiv,
  Fmod,       // has the sign of the dividend
  Remainder,  // has the sign of the divisor
  Pow,        // integers wrap around; a negative exponent gives the integer part
  Maximum,    // NaN if either operand is NaN
  Minimum,
  // float32, float64
  Div,
  Atan2,
  Hypot,
  Cube,  // a a b; if b = a, the third power
  CopySign,
  NextAfter,      // i[0]: distance of neighbours' bits; bfloat16 is the upper half of float
  NextAfterHalf,  // of float16
  // bool results
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  // int64, int32, bool
  And,
  Or,
  Xor,
  // int64, int32
  ShiftLeft,   // i[0]: the width of the tensors' own type in bits
  ShiftRight,  // i[0]: the greatest shift
  Count,
};

struct BinaryLoops {
  // nullptr if an operator has no loop for a type.
  ElementwiseFn fn[static_cast<size_t>(BinaryOp::Count)][kComputeTypes];
  // min(max(x, low), high), NaN if any is NaN. Inputs are x, low, high.
  ElementwiseFn clamp[kComputeTypes];
  // condition ? a : b, for elements of 1, 2, 4 and 8 bytes.
  ElementwiseFn where[4];
};

RL_LOOPS(BinaryLoops, binary_loops)

}  // namespace rushlight::kernels
