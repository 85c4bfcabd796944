// Inner loops of depthwise convolutions of bytes: a panel of channels, whose dot products are over
// four rows of an image at once.
#pragma once

#include <cstdint>

#include "rushlight/engine/loops/products/dot.h"
#include "rushlight/engine/types/quantized.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

// Pixels of four rows, of kPanel channels at most: column x and channel c of row j is byte x *
// strides[j] + (first + c) / repeats.
struct QuadRows {
  const uint8_t* rows[kQuad] = {};
  int64_t strides[kQuad] = {};
  int64_t columns = 0, channels = 0;
  int64_t first = 0, repeats = 1;
};

// sum(pixel) = sum over taps of quads[pixel * pixel_stride + tap * tap_stride] * weights[tap], for
// each channel; strides are in bytes, weights follow each other.
struct DepthwiseSums {
  const uint8_t* quads = nullptr;
  int64_t pixel_stride = 0, tap_stride = 0;
  const uint8_t* weights = nullptr;
  int64_t taps = 0;
  int64_t pixels = 0;
  bool add = false;         // to the existing sums
  int32_t* sums = nullptr;  // of pixel i at i * sums_stride
  int64_t sums_stride = 0;
};

// Bands of results of 3 by 3 taps, of whole panels of channels: two rows of results each where the
// stride is 1, or else one. Either way the next band is two rows further down the image.
struct DepthwiseBands {
  const uint8_t* const* rows =
      nullptr;  // column 0 of the image's rows, from the first band's first row on
  int64_t bands = 0;
  int64_t n_rows = 0;  // rows of results that are stored
  int64_t column_stride = 0;
  int64_t first = 0;    // column of the first tap of the first result
  int64_t columns = 0;  // of the image
  uint8_t padding = 0;
  int64_t channels = 0;
  const uint8_t* weights = nullptr;  // [tap y][tap x][channel]
  int64_t tap_stride = 0;
  const int32_t* start = nullptr;
  const float* multipliers = nullptr;
  Requantize requantize;
  int64_t pixels = 0;
  uint8_t* out = nullptr;
  int64_t out_stride = 0, out_row_stride = 0;
};

struct DotDepthwiseLoops {
  // out[x * kQuadBytes + c * kQuad + j] is row j's byte of column x and channel c; missing channels
  // are zeros.
  void (*interleave)(const QuadRows& rows, uint8_t* out);
  void (*sum)(const DepthwiseSums& sums);
  void (*bands[2])(const DepthwiseBands& bands);  // index: stride - 1; nullptr if there is none
};

RL_DOT_LOOPS(DotDepthwiseLoops, dot_depthwise_loops)

}  // namespace rushlight::engine
