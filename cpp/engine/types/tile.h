// Chains of elementwise operators as one pass: a tile program runs on a few hundred elements at a
// time, so that its intermediate results never leave the first-level cache.
//
// A program works on registers of kTileFloats floats each. Comparisons give 1 and 0. The space that
// it runs over has kTileRank dimensions, the last one innermost; every operand has a stride (in
// elements) for each of them, 0 where it is broadcast.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/dtype.h"
#include "rushlight/core/span.h"
#include "rushlight/engine/types/cpu_engine_fb.h"
#include "rushlight/kernel/selection.h"

namespace rushlight::engine {

constexpr int64_t kTileFloats = 512;
using fb::cpu_engine::TileLimit;
using fb::cpu_engine::TileOp;
constexpr size_t kTileOps = static_cast<size_t>(TileOp::MAX_VALUE) + 1;
constexpr size_t kTileRegisters = static_cast<size_t>(TileLimit::REGISTERS);
constexpr size_t kTileOperands = static_cast<size_t>(TileLimit::OPERANDS);  // inputs and outputs
constexpr size_t kTileInstructions = static_cast<size_t>(TileLimit::INSTRUCTIONS);
constexpr size_t kTileRank = static_cast<size_t>(TileLimit::RANK);

// Every operation that has a loop, in the order of their numbers: as the schema calls it, and the
// loop's name.
// clang-format off
#define RL_TILE_OPS(X) \
  X(ADD, Add) X(SUB, Sub) X(MUL, Mul) X(DIV, Div) X(MIN, Min) X(MAX, Max) X(POW, Pow) \
  X(FMOD, Fmod) X(REMAINDER, Remainder) X(MUL_ADD, MulAdd) X(EQUAL, Equal) \
  X(NOT_EQUAL, NotEqual) X(LESS, Less) X(LESS_EQUAL, LessEqual) X(GREATER, Greater) \
  X(GREATER_EQUAL, GreaterEqual) X(AND, And) X(OR, Or) X(NOT, Not) X(WHERE, Where) X(NEG, Neg) \
  X(ABS, Abs) X(SQUARE, Square) X(SQRT, Sqrt) X(RSQRT, Rsqrt) X(RECIPROCAL, Reciprocal) \
  X(EXP, Exp) X(EXP2, Exp2) X(EXPM1, Expm1) X(LOG, Log) X(LOG1P, Log1p) X(SIN, Sin) X(COS, Cos) \
  X(TANH, Tanh) X(SIGMOID, Sigmoid) X(ERF, Erf) X(GELU, Gelu) X(GELU_TANH, GeluTanh) \
  X(SILU, Silu) X(MISH, Mish) X(SOFTPLUS, Softplus) X(RELU, Relu) X(HARDSWISH, Hardswish) \
  X(HARDSIGMOID, Hardsigmoid) X(ELU, Elu) X(FLOOR, Floor) X(CEIL, Ceil) X(ROUND, Round) \
  X(TRUNC, Trunc) X(SIGN, Sign) X(ADD_VALUE, AddValue) X(MUL_VALUE, MulValue) \
  X(MIN_VALUE, MinValue) X(MAX_VALUE, MaxValue)
// clang-format on

// False if this build was made without the operation's loop.
constexpr bool has_tile_op([[maybe_unused]] TileOp op) {
#if defined(RL_SELECTED_TILE_OPS)
#define RL_IS_OP(name) || op == TileOp::name
  return op < TileOp::ADD RL_SELECTED_TILE_OPS(RL_IS_OP);
#undef RL_IS_OP
#else
  return true;
#endif
}

struct TileInstruction {
  TileOp op;
  uint8_t out;
  uint8_t a;
  uint8_t b;
  uint8_t c;
  float value;
};

struct TileOperand {
  void* data = nullptr;
  DType dtype = DType::Float32;  // Float32 or Bool; registers hold floats
  int64_t strides[kTileRank] = {};
};

struct TileRun {
  Span<const TileInstruction> program;
  const TileOperand* operands = nullptr;
  int64_t sizes[kTileRank] = {1, 1, 1, 1};
};

}  // namespace rushlight::engine
