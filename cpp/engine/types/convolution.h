// Convolutions, pools and resizes over 1 or 2 spatial dimensions, channels last: images are [batch,
// height, width, channels] in memory.
//
// Weights of a dense convolution are panels (panels.h) of a matrix with a row for each (tap y, tap
// x, input channel) and a column for each output channel. With groups, the panels of one group lie
// behind those of the one before. Weights of a depthwise convolution (one input channel per group)
// lie as [tap y][tap x][output channel], the channels filled up with zeros to whole panels.
#pragma once

#include <cstdint>

#include "rushlight/engine/types/product.h"

namespace rushlight::engine {

struct ConvGeometry {
  int64_t batch = 1;
  int64_t in_height = 1, in_width = 1, in_channels = 1;
  int64_t out_height = 1, out_width = 1, out_channels = 1;
  int64_t kernel_y = 1, kernel_x = 1;
  int64_t stride_y = 1, stride_x = 1;
  int64_t dilation_y = 1, dilation_x = 1;
  int64_t pad_top = 0, pad_left = 0;  // what lies outside on any side is zero
  int64_t groups = 1;
};

// Whether there are no results.
inline bool is_empty(const ConvGeometry& g) {
  return g.batch <= 0 || g.out_height <= 0 || g.out_width <= 0 || g.out_channels <= 0;
}

struct Convolution {
  ConvGeometry geometry;
  const float* in = nullptr;
  // Strides of the input, so that a contiguous (channels first) image can be read as it lies.
  int64_t in_batch_stride = 0, in_row_stride = 0, in_column_stride = 0, in_channel_stride = 1;
  const float* weights = nullptr;
  float* out = nullptr;  // [batch, out_height, out_width, out_channels], dense
  Epilogue epilogue;     // rows are pixels: (batch * out_height + y) * out_width + x
};

// Dense ones of 3 by 3 taps without strides, dilation or groups, by Winograd's algorithm. Both
// numbers of channels are multiples of kPanel and channels of the image neighbours. The weights are
// 36 matrices, for each product one, as panels. `scratch` is for so many threads.
constexpr int64_t kWinogradIn = 6;   // pixels along each side of a tile of the image
constexpr int64_t kWinogradOut = 4;  // and of the results that come of it
constexpr int64_t kWinogradProducts = kWinogradIn * kWinogradIn;

enum class Pool : uint8_t { Max, Average };
struct PoolShape {
  ConvGeometry geometry;  // in_channels == out_channels, weights none
  Pool kind = Pool::Max;
  bool count_padding = true;  // of averages: taps outside count
  int64_t divisor = 0;        // of averages: instead of a count, if not 0
};
struct Pooling : PoolShape {
  const float* in = nullptr;  // dense, channels last
  float* out = nullptr;
};

// The maximum of each window, and the number of its first place (y * kernel_x + x); NaN counts as
// the greatest. Windows lie side by side; what is left at the edges is in none.
struct ArgMax {
  ConvGeometry geometry;      // stride == kernel
  const float* in = nullptr;  // dense, channels last
  float* out = nullptr;
  int64_t* places = nullptr;
};

// Bilinear interpolation between the centres of pixels, or, align_corners, between their corners
// (torch.nn.functional.interpolate has both).
struct Resize {
  ConvGeometry geometry;  // the sizes alone
  bool align_corners = false;
  const float* in = nullptr;  // dense, channels last
  float* out = nullptr;
};

}  // namespace rushlight::engine
