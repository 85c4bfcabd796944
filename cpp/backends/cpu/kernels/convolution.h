// Float32 convolutions over 1 or 2 spatial dimensions, channels last: images are [batch, height,
// width, channels] in memory.
//
// Weights of a dense convolution are panels (product.h) of a matrix with a row for each (tap y, tap
// x, input channel) and a column for each output channel. With groups, the panels of one group lie
// behind those of the one before. Weights of a depthwise convolution (one input channel per group)
// lie as [tap y][tap x][output channel], the channels filled up with zeros to whole panels.
#pragma once

#include "rushlight/backends/cpu/kernels/product.h"

namespace rushlight::cpu {

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

struct Convolution {
  ConvGeometry geometry;
  const float* in = nullptr;
  // Steps of the input, so that a contiguous (channels first) image can be read as it lies.
  int64_t in_batch_step = 0, in_row_step = 0, in_column_step = 0, in_channel_step = 1;
  const float* weights = nullptr;
  float* out = nullptr;  // [batch, out_height, out_width, out_channels], dense
  Finish finish;         // rows are pixels: (batch * out_height + y) * out_width + x
};

// Bytes; 0 for most 1 by 1 convolutions.
size_t convolution_scratch(const ConvGeometry& geometry);
// Dense and grouped. `scratch` has convolution_scratch() bytes.
void convolve(const Convolution& convolution, void* scratch, Workers* workers);
// Depthwise: groups == in_channels, out_channels a multiple of them. Needs no scratch.
void convolve_depthwise(const Convolution& convolution, Workers* workers);

// Dense ones of 3 by 3 taps without strides, dilation or groups, by Winograd's algorithm. Both
// numbers of channels are multiples of kPanel and channels of the image neighbours. The weights are
// 36 matrices, for each product one, as panels. `scratch` is for so many threads.
constexpr int64_t kWinogradIn = 6;   // pixels along each side of a tile of the image
constexpr int64_t kWinogradOut = 4;  // and of the results that come of it
constexpr int64_t kWinogradProducts = kWinogradIn * kWinogradIn;
size_t winograd_scratch(const ConvGeometry& geometry, size_t threads);
void convolve_winograd(const Convolution& convolution, void* scratch, Workers* workers);

size_t transposed_scratch(const ConvGeometry& geometry);
// Transposed: `geometry` is that of the transposed convolution itself (in is the smaller image),
// the panels are of a matrix with a row for each input channel (of a group) and a column for each
// (tap y, tap x, output channel of a group).
void convolve_transposed(const Convolution& convolution, void* scratch, Workers* workers);

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
void pool(const Pooling& pooling, Workers* workers);

// The maximum of each window, and the number of its first place (y * kernel_x + x); NaN counts as
// the greatest. Windows lie side by side; what is left at the edges is in none.
struct ArgMax {
  ConvGeometry geometry;      // stride == kernel
  const float* in = nullptr;  // dense, channels last
  float* out = nullptr;
  int64_t* places = nullptr;
};
void arg_max(const ArgMax& given, Workers* workers);

// Bilinear interpolation between the centres of pixels, or, align_corners, between their corners
// (torch.nn.functional.interpolate has both).
struct Resize {
  ConvGeometry geometry;  // the sizes alone
  bool align_corners = false;
  const float* in = nullptr;  // dense, channels last
  float* out = nullptr;
};
void resize_bilinear(const Resize& given, Workers* workers);

}  // namespace rushlight::cpu
