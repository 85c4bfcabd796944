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

namespace rushlight::engine {

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
  DType dtype = DType::Float32;  // Float32 or Bool; registers hold floats
  int64_t strides[kTileRank] = {};
};

struct TileRun {
  Span<const TileInstruction> program;
  const TileOperand* operands = nullptr;
  int64_t sizes[kTileRank] = {1, 1, 1, 1};
};

}  // namespace rushlight::engine
