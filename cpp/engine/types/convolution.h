// Convolutions, pools and resizes over 1 or 2 spatial dimensions, channels last: images are [batch,
// height, width, channels] in memory.
//
// Weights of a dense convolution are panels (panels.h) of a matrix with a row for each (tap y, tap
// x, input channel) and a column for each output channel. With groups, the panels of one group
// follow those of the group before. Weights of a depthwise convolution (one input channel per
// group) are [tap y][tap x][output channel], with zeros added to the channels up to a whole panel.
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
  int64_t pad_top = 0, pad_left = 0;  // pixels outside the image are zero
  int64_t groups = 1;
};

// Whether there are no results.
inline bool is_empty(const ConvGeometry& g) {
  return g.batch <= 0 || g.out_height <= 0 || g.out_width <= 0 || g.out_channels <= 0;
}

struct Convolution {
  ConvGeometry geometry;
  const float* in = nullptr;
  // Strides of the input, so that a contiguous (channels first) image can be read without a copy.
  int64_t in_batch_stride = 0, in_row_stride = 0, in_column_stride = 0, in_channel_stride = 1;
  const float* weights = nullptr;
  float* out = nullptr;  // [batch, out_height, out_width, out_channels], dense
  Epilogue epilogue;     // rows are pixels: (batch * out_height + y) * out_width + x
};

// Dense convolutions of 3 by 3 taps without strides, dilation or groups, by Winograd's algorithm.
// Both numbers of channels are multiples of kPanel, and the image's channels are dense. The weights
// are 36 matrices in panels, one for each product.
constexpr int64_t kWinogradIn = 6;   // pixels along each side of a tile of the image
constexpr int64_t kWinogradOut = 4;  // along each side of the tile of results
constexpr int64_t kWinogradProducts = kWinogradIn * kWinogradIn;

enum class Pool : uint8_t { Max, Average };
struct PoolShape {
  ConvGeometry geometry;  // in_channels == out_channels, weights none
  Pool kind = Pool::Max;
  bool count_padding = true;  // an average also counts the taps outside
  int64_t divisor = 0;        // an average divides by this instead of the count, if it is not 0
};
struct Pooling : PoolShape {
  const float* in = nullptr;  // dense, channels last
  float* out = nullptr;
};

// The maximum of each window, and where in the window it is first (y * kernel_x + x); NaN counts as
// the greatest. Windows do not overlap; pixels left over at the edges belong to none.
struct ArgMax {
  ConvGeometry geometry;      // stride == kernel
  const float* in = nullptr;  // dense, channels last
  float* out = nullptr;
  int64_t* places = nullptr;
};

// Bilinear interpolation between the centres of pixels, or with align_corners between their corners
// (torch.nn.functional.interpolate has both).
struct Resize {
  ConvGeometry geometry;  // only the sizes are used
  bool align_corners = false;
  const float* in = nullptr;  // dense, channels last
  float* out = nullptr;
};

}  // namespace rushlight::engine
