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
};

// The loops of one operator: nullptr for a type that it has none for, or that this build leaves
// out.
struct UnaryRow {
  ElementwiseFn fn[kComputeTypes];
};

// An object for each operator, so that a program links those that it calls: unary_Exp, ...
// clang-format off
#define RL_UNARY_OPS(X) \
  X(Exp) X(Exp2) X(Expm1) X(Log) X(Log1p) X(Log2) X(Log10) X(Sqrt) X(Rsqrt) X(Reciprocal) \
  X(Sigmoid) X(Tanh) X(Erf) X(Erfinv) X(Sin) X(Cos) X(Tan) X(Asin) X(Acos) X(Atan) X(Sinh) \
  X(Cosh) X(Asinh) X(Acosh) X(Atanh) X(Gelu) X(GeluTanh) X(Elu) X(LeakyRelu) X(Logit) X(Floor) \
  X(Ceil) X(Round) X(Trunc) X(Abs) X(Neg) X(Sign) X(Relu) X(Clamp) X(Signbit) X(IsNan) X(IsInf) \
  X(BitwiseNot)
// clang-format on
#define RL_DECLARE_ROW(op) RL_LOOPS(UnaryRow, unary_##op)
RL_UNARY_OPS(RL_DECLARE_ROW)
#undef RL_DECLARE_ROW

// An operator and its loops: RL_UNARY(Exp).
struct Unary {
  UnaryOp op;
  const UnaryRow* row;

  ElementwiseFn loop(ComputeType type) const { return row->fn[type]; }
};
#define RL_UNARY(name) (Unary{UnaryOp::name, &unary_##name()})

}  // namespace rushlight::kernels
