// Convolutions of uint8 with int8 weights, channels last. The sums are integers, and exact on every
// instruction set.
//
// Weights of a dense convolution are panels (dot_product.h) with terms in the order of (tap y, tap
// x, input channel), those of each tap filled up with zeros to whole quads; the panels of one group
// lie behind those of the one before. Weights of a depthwise convolution are [tap y][tap x][output
// channel], with zeros added to the channels up to a whole panel.
#pragma once

#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/kernels/products/dot_product.h"

namespace rushlight::engine {

struct QuantizedConvolution {
  ConvGeometry geometry;  // pixels outside the image are padding_value
  uint8_t padding_value = 0;
  const uint8_t* in = nullptr;
  int64_t in_batch_stride = 0, in_row_stride = 0, in_column_stride = 0;
  int64_t in_channel_stride = 1;  // 1 for depthwise convolutions
  const void* weights = nullptr;
  QuantizedResults results;  // rows are pixels: (batch * out_height + y) * out_width + x
};

// Dense and grouped. The scratch is in bytes.
size_t quantized_convolution_scratch(const ConvGeometry& geometry, int64_t channel_stride);
void convolve(const QuantizedConvolution& convolution, void* scratch, Workers* workers);

// Depthwise, of a dense image: groups == in_channels, out_channels a multiple of them. The scratch
// is in bytes.
size_t quantized_depthwise_scratch(const ConvGeometry& geometry);
void convolve_depthwise(const QuantizedConvolution& convolution, void* scratch, Workers* workers);

}  // namespace rushlight::engine
