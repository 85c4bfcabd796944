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
};

// The loops of one operator: nullptr for a type that it has none for, or that this build leaves
// out.
struct BinaryRow {
  ElementwiseFn fn[kComputeTypes];
};

// An object for each operator, so that a program links those that it calls: binary_Add, ...
// clang-format off
#define RL_BINARY_OPS(X) \
  X(Add) X(AddAlpha) X(Mul) X(TruncDiv) X(FloorDiv) X(Fmod) X(Remainder) X(Pow) X(Maximum) \
  X(Minimum) X(Div) X(Atan2) X(Hypot) X(Cube) X(CopySign) X(NextAfter) X(NextAfterHalf) X(Eq) \
  X(Ne) X(Lt) X(Le) X(Gt) X(Ge) X(And) X(Or) X(Xor) X(ShiftLeft) X(ShiftRight)
// clang-format on
#define RL_DECLARE_ROW(op) RL_LOOPS(BinaryRow, binary_##op)
RL_BINARY_OPS(RL_DECLARE_ROW)
#undef RL_DECLARE_ROW

// An operator and its loops: RL_BINARY(Add).
struct Binary {
  BinaryOp op;
  const BinaryRow* row;

  ElementwiseFn loop(ComputeType type) const { return row->fn[type]; }
};
#define RL_BINARY(name) (Binary{BinaryOp::name, &binary_##name()})

// min(max(x, low), high), NaN if any is NaN. Inputs are x, low, high.
RL_LOOPS(BinaryRow, clamp_loops)

struct WhereLoops {
  // condition ? a : b, for elements of 1, 2, 4 and 8 bytes.
  ElementwiseFn fn[4];
};

RL_LOOPS(WhereLoops, where_loops)

}  // namespace rushlight::kernels
