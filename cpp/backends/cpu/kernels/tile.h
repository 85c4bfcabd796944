// Chains of elementwise operators as one pass: a tile program is run on a few hundred elements at a
// time, so that what lies between its instructions never leaves the first-level cache.
//
// A program is in registers of kTileFloats floats each. Comparisons give 1 and 0. The space that it
// runs over has kTileRank dimensions, the last one innermost; every operand has a step (in
// elements) for each of them, 0 where it is broadcast.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/dtype.h"
#include "rushlight/core/span.h"
#include "rushlight/platform/workers.h"

namespace rushlight::cpu {

constexpr int64_t kTileFloats = 512;
constexpr size_t kTileRegisters = 8;
constexpr size_t kTileOperands = 16;  // inputs and outputs together
constexpr size_t kTileInstructions = 256;
constexpr size_t kTileRank = 4;

enum class TileOp : uint8_t {
  Load,      // register out = operand a
  Store,     // operand out = register a
  Constant,  // register out = value
  Add,
  Sub,
  Mul,
  Div,
  Min,
  Max,
  Pow,
  Fmod,
  Remainder,  // register out = a op b
  MulAdd,     // a * b + c
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  And,
  Or,
  Not,    // of conditions: not 0
  Where,  // a != 0 ? b : c
  Neg,
  Abs,
  Square,
  Sqrt,
  Rsqrt,
  Reciprocal,
  Exp,
  Exp2,
  Expm1,
  Log,
  Log1p,
  Sin,
  Cos,
  Tanh,
  Sigmoid,
  Erf,
  Gelu,
  GeluTanh,
  Silu,
  Mish,
  Softplus,
  Relu,
  Hardswish,
  Hardsigmoid,
  Elu,  // value * (e^a - 1) below 0
  Floor,
  Ceil,
  Round,
  Trunc,
  Sign,
  AddValue,
  MulValue,
  MinValue,
  MaxValue,  // with `value`
};
constexpr size_t kTileOps = static_cast<size_t>(TileOp::MaxValue) + 1;

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
  DType dtype = DType::Float32;  // Float32 or Bool; in registers all is float
  int64_t steps[kTileRank] = {};
};

struct TileRun {
  Span<const TileInstruction> program;
  const TileOperand* operands = nullptr;
  int64_t sizes[kTileRank] = {1, 1, 1, 1};
};

// False if there are too many instructions, if a register, an operand or an op is out of range, or
// if a register is read before it is written: what comes from a file is checked with this before it
// is run.
bool tile_program_valid(Span<const TileInstruction> program, size_t operands);

void run_tiles(const TileRun& run, Workers* workers);
// The part of the same for rows row..row+rows-1 of dimension 2 and columns column..column+columns-1
// of dimension 3, in place on this thread: what a Finish calls. Dimensions 0 and 1 have size 1.
void run_tile_block(const TileRun& run, int64_t row, int64_t rows, int64_t column, int64_t columns);

}  // namespace rushlight::cpu
