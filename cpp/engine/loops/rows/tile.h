// Inner loops of tile programs: one function for each operator, over the registers of a tile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/engine/types/tile.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

// Registers are filled up with zeros to a multiple of this many floats, which is a multiple of
// every instruction set's lanes: the same code computes an element wherever it lies in a tile.
constexpr int64_t kTilePad = 16;
// The capacity of a register in floats; loads write whole vectors.
constexpr int64_t kRegisterFloats = kTileFloats + kTilePad;

// out may be a, b or c; n is a multiple of kTilePad.
using TileFn = void (*)(const float* a, const float* b, const float* c, float value, float* out,
                        int64_t n);

// The elements of an operand that are in a tile: `rows` rows, one after the other in the register.
// Strides count elements.
struct TileBlock {
  void* data;
  int64_t rows, columns;
  int64_t row_stride, column_stride;
};

struct TileLoops {
  // nullptr for Load, Store and Constant, and for what this build leaves out.
  TileFn functions[kTileOps];
  void (*fill)(float value, float* out, int64_t n);
  // For floats and for bools.
  void (*load)(const TileBlock& from, float* out);
  void (*load_bool)(const TileBlock& from, float* out);
  void (*store)(const float* in, const TileBlock& to);
  void (*store_bool)(const float* in, const TileBlock& to);
};

RL_LOOPS(TileLoops, tile_loops)

}  // namespace rushlight::engine
