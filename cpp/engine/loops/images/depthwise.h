// Inner loops of depthwise convolutions: a few pixels of a row at once, one vector of channels
// after the other.
#pragma once

#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

constexpr int64_t kDepthwisePixels = 7;

// Up to kDepthwisePixels neighbouring results of a row, or of two.
struct DepthwiseTile {
  const float* in = nullptr;  // the first tap of the first result; may lie outside the image
  int64_t row_stride = 0, column_stride = 0;
  // Bit j: row or column j of those that the tile reads is within the image.
  uint32_t rows_inside = 0, columns_inside = 0;
  const float* weights = nullptr;
  int64_t tap_stride = 0;  // from one tap to the next
  const float* bias = nullptr;
  float* out = nullptr;
  int64_t out_stride = 0, out_row_stride = 0;
  int64_t pixels = 0, rows = 0;  // that are stored
  int64_t channels = 0;
  float low = 0, high = 0;
};
using DepthwiseFn = void (*)(const DepthwiseTile& tile);

// One result with any number of taps.
struct DepthwisePoint {
  const float* in = nullptr;
  int64_t y_stride = 0, x_stride = 0;  // from tap to tap
  int64_t taps_y = 0, taps_x = 0;      // within the image
  const float* weights = nullptr;      // of the first of them
  int64_t weights_y_stride = 0, tap_stride = 0;
  const float* bias = nullptr;
  float* out = nullptr;
  int64_t channel = 0, channels = 0;  // of the result: the first, and how many
  int64_t multiplier = 1;             // results of one channel of the input
  float low = 0, high = 0;
};

// Which columns may lie outside the image, and which results may not be stored.
enum class DepthwiseEdge : uint8_t {
  None,   // all columns inside, all pixels stored
  Sides,  // all pixels stored
  Any,
};
constexpr int kDepthwiseEdges = 3;

struct DepthwiseLoops {
  // [kernel width: 3, 5, 7][stride - 1][edge], nullptr if there is none.
  DepthwiseFn tile[3][2][kDepthwiseEdges];
  int64_t rows[3];  // of results of a tile, by kernel width
  void (*point)(const DepthwisePoint& point);
};

RL_LOOPS(DepthwiseLoops, depthwise_loops)

}  // namespace rushlight::engine
