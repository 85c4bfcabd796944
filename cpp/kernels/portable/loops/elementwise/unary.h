// Inner loops of operators with one input (loops/elementwise.h).
#pragma once

#include "rushlight/kernels/portable/loops/elementwise/elementwise.h"

namespace rushlight::kernels {

enum class UnaryOp {
  // float32 and float64
  Exp,
  Exp2,
  Expm1,
  Log,
  Log1p,
  Log2,
  Log10,
  Sqrt,
  Rsqrt,
  Reciprocal,
  Sigmoid,
  Tanh,
  Erf,
  Erfinv,  // float32 only
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Asinh,
  Acosh,
  Atanh,
  Gelu,
  GeluTanh,
  Elu,        // d[0] alpha * scale, d[1] scale, d[2] input scale
  LeakyRelu,  // d[0] slope
  Logit,      // d[0] eps; if negative, no clamp
  Floor,
  Ceil,
  Round,
  Trunc,
  // and int64, int32
  Abs,
  Neg,
  Sign,
  Relu,
  Clamp,    // d[0], d[1] or i[0], i[1]: least and greatest value
  Signbit,  // bool results
  // float32 and float64, bool results
  IsNan,
  IsInf,
  // int64, int32, bool
  BitwiseNot,
  Count,
};

struct UnaryLoops {
  // nullptr if an operator has no loop for a type.
  ElementwiseFn fn[static_cast<size_t>(UnaryOp::Count)][kComputeTypes];
};

RL_LOOPS(UnaryLoops, unary_loops)

}  // namespace rushlight::kernels
