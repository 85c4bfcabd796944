// Inner loops of products of uint8 with packed int8 weights, and of dense convolutions: register
// tiles over panels of bytes (../kernels/dot_product.h). Sums are exact on every instruction set.
#pragma once

#include <cstdint>

#include "rushlight/engine/loops/products/gemm.h"
#include "rushlight/engine/loops/products/quantize.h"
#include "rushlight/engine/types/dot_product.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

// Sums over taps and k of A B. Rows 0..6 and the other rows have separate bases in A, so that a
// tile may cover two rows of an image. Strides are in bytes.
struct DotTile {
  int64_t rows = 0;
  const uint8_t* a[2] = {};
  int64_t a_stride = 0;     // between rows
  int64_t quad_stride = 4;  // between groups of four neighbouring terms
  int64_t depth = 0;        // terms of one tap; nothing is read beyond them
  int64_t taps_y = 1, taps_x = 1;
  int64_t tap_y_stride = 0,
          tap_x_stride = 0;  // of A; in B the taps follow each other, each filled up to whole quads
  const void* b = nullptr;
  int64_t b_panel = 0;  // from one panel of B to the next
  // What is needed next; a few bytes of it are fetched into the second-level cache with each quad.
  const char* ahead = nullptr;
  int64_t ahead_stride = 0;
  // Weights of 4 bits, and rows in groups: groups of terms that share a scale.
  int64_t groups = 0;
  const void* scales = nullptr;  // of a panel: [groups, kPanel]
  ScaleType scale_type = ScaleType::Float32;
  int64_t scale_panel = 0;  // from one panel's scales to the next ones
  RowGroups row_groups;     // of the tile's rows
};
// Row i of the tile's sums begins at i * panels * kPanel; all columns of the panels are written.
using DotTileFn = void (*)(const DotTile& tile, void* sums);

// The same for two whole panels whose sums are requantized in registers: they become the rows from
// `row` on of `c`.
using DotBytesFn = void (*)(const DotTile& tile, const RequantizeColumns& c, int64_t row);

// The same for the greatest number of whole panels whose sums are floats and are dequantized in
// registers; `c` does not clamp.
using DotFloatsFn = void (*)(const DotTile& tile, const DequantizeColumns& c, int64_t row);

struct DotTiles {
  int64_t rows;                              // greatest height of a tile
  int64_t panels;                            // greatest width
  DotTileFn tile[kMaxTileRows][kMaxPanels];  // [rows - 1][panels - 1]
  DotTileFn narrow[kNarrowRows];             // [rows - 1]: one panel, one tap, several sums at once
  DotBytesFn bytes[kMaxTileRows];            // [rows - 1]; nullptr where there are none
  DotFloatsFn floats[kMaxTileRows];          // the same
};

// For weights of 4 bits: one tap, and all rows from one base.
struct NibbleLoops {
  DotTiles integers;  // sums of 16 times the weights, int32
  DotTiles numbers;   // each group's sum times its scale, added up; float
};

// For rows of int8 in groups: one tap, and all rows from one base. Sums are floats, each group's
// times its two scales, added up.
struct GroupLoops {
  DotTiles bytes;    // weights of 8 bits
  DotTiles nibbles;  // of 4
};

RL_DOT_LOOPS(DotTiles, dot_loops)
RL_DOT_LOOPS(NibbleLoops, nibble_loops)
RL_DOT_LOOPS(GroupLoops, group_loops)

}  // namespace rushlight::engine
