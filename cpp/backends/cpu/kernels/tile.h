// Chains of elementwise operators as one pass: a tile program is run on a few hundred elements at a
// time, so that what lies between its instructions never leaves the first-level cache.
//
// A program is in registers of kTileFloats floats each. Comparisons give 1 and 0. The space that it
// runs over has kTileRank dimensions, the last one innermost; every operand has a step (in
// elements) for each of them, 0 where it is broadcast.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/backends/cpu/cpu_engine_fb.h"
#include "rushlight/core/dtype.h"
#include "rushlight/core/span.h"
#include "rushlight/platform/workers.h"

namespace rushlight::cpu {

constexpr int64_t kTileFloats = 512;
using fb::cpu_engine::TileLimit;
using fb::cpu_engine::TileOp;
constexpr size_t kTileOps = static_cast<size_t>(TileOp::MAX_VALUE) + 1;
constexpr size_t kTileRegisters = static_cast<size_t>(TileLimit::REGISTERS);
constexpr size_t kTileOperands = static_cast<size_t>(TileLimit::OPERANDS);  // inputs and outputs
constexpr size_t kTileInstructions = static_cast<size_t>(TileLimit::INSTRUCTIONS);
constexpr size_t kTileRank = static_cast<size_t>(TileLimit::RANK);

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
