// Inner loops of Winograd's convolution: the transforms of tiles before and after the products
// (engine/kernels/images/winograd.cpp).
#pragma once

#include <cstdint>

#include "rushlight/engine/types/convolution.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

// A tile of 6 by 6 pixels, of which some may lie outside the image and are zeros.
struct WinogradInput {
  const float* in = nullptr;  // of the image
  int64_t row_stride = 0, column_stride = 0;
  int64_t y = 0, x = 0;           // the tile's first pixel; may lie outside the image
  int64_t height = 0, width = 0;  // of the image
  int64_t channels = 0;           // a multiple of kPanel
  float* out = nullptr;           // product p of channel c at p * out_stride + c
  int64_t out_stride = 0;
};

// A tile of 4 by 4 results, of which the first `rows` and `columns` are stored.
struct WinogradOutput {
  const float* in = nullptr;  // product p of channel c at p * in_stride + c
  int64_t in_stride = 0;
  int64_t rows = 0, columns = 0;
  int64_t channels = 0;  // a multiple of kPanel
  float* out = nullptr;
  int64_t row_stride = 0, column_stride = 0;
  const float* bias = nullptr;      // or nullptr
  const float* residual = nullptr;  // is added; may be nullptr
  int64_t residual_row = 0, residual_column = 0;
  float low = 0, high = 0;  // if `clamp`
  bool clamp = false;
};

struct WinogradLoops {
  void (*input)(const WinogradInput& tile);
  void (*output)(const WinogradOutput& tile);
};

RL_LOOPS(WinogradLoops, winograd_loops)

}  // namespace rushlight::engine
