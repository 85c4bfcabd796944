// Inner loops of matrix products in float32 and dense convolutions: register tiles over packed
// panels (../kernels/panels.h), each element of the result is summed in the order of its terms.
#pragma once

#include <cstdint>

#include "rushlight/engine/types/product.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

constexpr int64_t kMaxTileRows = 14;
constexpr int64_t kLeastTileRows = 3;  // greatest height of a tile with the fewest registers
constexpr int64_t kFirstRows = 7;      // rows of a tile that are addressed from its first base
constexpr int64_t kMaxPanels = 2;      // of a tile
constexpr int64_t kNarrowRows = 6;

// A tile of C = bias + sum over taps and k of A B. Rows 0..6 and the other rows have separate bases
// in A, so that a tile may cover two rows of an image.
struct GemmTile {
  int64_t rows = 0;
  const float* a[2] = {};
  int64_t a_stride = 0;  // between rows
  int64_t k_stride = 1;  // between terms
  int64_t depth = 0;     // terms of one tap
  int64_t taps_y = 1, taps_x = 1;
  int64_t tap_y_stride = 0, tap_x_stride = 0;  // of A; B goes on from tap to tap
  const void* b = nullptr;
  int64_t b_panel = 0;  // from one panel of B to the next, in elements
  float* c = nullptr;
  int64_t c_stride = 0;
  int64_t columns = 0;              // that are stored; they reach into the last panel
  const float* bias = nullptr;      // for whole panels, or nullptr
  const float* residual = nullptr;  // is added, in C's layout
  int64_t residual_stride = 0;
  bool clamp = false;
  float low = 0, high = 0;
  // What is needed next; a few bytes of it are fetched into the second-level cache with each term.
  // For `narrow`, nullptr if nothing is to be fetched.
  const char* ahead = nullptr;
  int64_t ahead_stride = 0;
};
using GemmTileFn = void (*)(const GemmTile& tile);

struct GemmLoops {
  int64_t rows;                               // greatest height of a tile
  int64_t panels;                             // greatest width
  GemmTileFn tile[kMaxTileRows][kMaxPanels];  // [rows - 1][panels - 1]
  GemmTileFn narrow[kNarrowRows];  // [rows - 1]: one panel, one tap, several sums at once
  GemmTileFn narrow_float16[kNarrowRows];
  GemmTileFn narrow_bfloat16[kNarrowRows];
  // out[k * rows + i] = row[i][k]; `out` has room for 16 floats more.
  void (*pack_rows)(const float* const* row, int64_t rows, int64_t depth, float* out);
  // out[k * kPanel + j] = in[k * row_stride + j * column_stride], zeros from `columns` on.
  void (*pack_panel)(const float* in, int64_t row_stride, int64_t column_stride, int64_t depth,
                     int64_t columns, float* out);
};

RL_LOOPS(GemmLoops, gemm_loops)

}  // namespace rushlight::engine
