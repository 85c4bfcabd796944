#include "rushlight/engine/kernels/images/quantized_convolution.h"

#include "rushlight/engine/kernels/images/image.h"
#include "rushlight/engine/kernels/products/dot_blocks.h"

namespace rushlight::engine {
namespace {

int64_t filled(int64_t channels) { return quads_of(channels) * kQuad; }

// Whole quads, and not a stride with which the pixels that a tile reads together fall into one set
// of the first-level cache.
int64_t pixel_stride(const ConvGeometry& g) {
  const int64_t channels = filled(g.in_channels);
  return channels * g.stride_x % 4096 == 0 ? channels + kQuadBytes : channels;
}

bool needs_copy(const ConvGeometry& g, int64_t channel_stride) {
  if (channel_stride != 1) return true;
  if (is_pointwise(g)) return false;
  return needs_padding(g) || (g.groups == 1 && g.in_channels % kQuad != 0);
}

// One group of channels of one image, or of all of them.
struct Group {
  const uint8_t* panels;
  int64_t in_channel;
  QuantizedResults results;
  PartEpilogue epilogue;

  Group(const QuantizedConvolution& conv, int64_t image, int64_t index) {
    const ConvGeometry& g = conv.geometry;
    const int64_t inputs = g.in_channels / g.groups;
    const int64_t outputs = g.out_channels / g.groups;
    const int64_t row = image * g.out_height * g.out_width;
    const int64_t column = index * outputs;
    const int64_t bytes =
        panels_of(outputs) * quads_of(inputs) * g.kernel_y * g.kernel_x * kQuadBytes;
    panels = static_cast<const uint8_t*>(conv.weights) + index * bytes;
    in_channel = index * inputs;
    epilogue.whole = conv.results.epilogue;
    epilogue.row = row;
    epilogue.column = column;
    results = conv.results;
    results.start += column;
    results.multipliers += column;
    const int64_t first = row * results.stride + column;
    if (results.bytes != nullptr) results.bytes += first;
    if (results.residual != nullptr) results.residual += row * results.residual_stride + column;
    if (results.floats != nullptr) results.floats += first;
    results.epilogue = epilogue.part();
  }
  Group(const Group&) = delete;  // `results` points to `epilogue`
  Group& operator=(const Group&) = delete;
};

void convolve_image(const QuantizedConvolution& conv, const Image<uint8_t>& source,
                    const Group& group, Workers* workers) {
  const ConvGeometry& g = conv.geometry;
  Image<uint8_t> image = source;
  image.data += group.in_channel;
  const Tiling<uint8_t> tiling(image, g, dot_loops().rows);
  // A copy has whole quads; in a group, nothing after its channels may be read.
  const int64_t channels = g.groups == 1 && needs_copy(g, conv.in_channel_stride)
                               ? filled(g.in_channels)
                               : g.in_channels / g.groups;
  // Whether the taps of a row are dense.
  const bool in_rows =
      channels == image.column_stride && channels % kQuad == 0 && g.dilation_x == 1;
  DotGrid grid(g.kernel_y * (in_rows ? 1 : g.kernel_x), in_rows ? g.kernel_x * channels : channels);
  grid.row_blocks = tiling.blocks();
  grid.rows = g.out_height * g.out_width;
  grid.columns = g.out_channels / g.groups;
  grid.tile.a_stride = image.column_stride * g.stride_x;
  grid.tile.taps_y = g.kernel_y;
  grid.tile.tap_y_stride = image.row_stride * g.dilation_y;
  grid.tile.taps_x = in_rows ? 1 : g.kernel_x;
  grid.tile.tap_x_stride = image.column_stride * g.dilation_x;
  grid.panels = group.panels;
  grid.results = group.results;
  grid.set_group(image_height(g) * image_width(g) * channels / grid.row_blocks, workers);
  grid.place = place_tile<uint8_t, DotTile>;
  grid.data = &tiling;
  run_blocks(grid, workers);
}

// A 1 by 1 convolution of all images as one product.
void convolve_pixels(const QuantizedConvolution& conv, const Group& group, Workers* workers) {
  const ConvGeometry& g = conv.geometry;
  QuantizedProduct product;
  product.rows = g.batch * g.out_height * g.out_width;
  product.depth = g.in_channels / g.groups;
  product.columns = g.out_channels / g.groups;
  product.a = conv.in + group.in_channel;
  product.a_stride = conv.in_column_stride * g.stride_x;
  product.panels = group.panels;
  product.results = group.results;
  multiply(product, workers);
}

}  // namespace

size_t quantized_convolution_scratch(const ConvGeometry& g, int64_t channel_stride) {
  if (is_empty(g) || !needs_copy(g, channel_stride)) return 0;
  return static_cast<size_t>(padded_size(g, pixel_stride(g))) + kCacheLine;
}

void convolve(const QuantizedConvolution& conv, void* scratch, Workers* workers) {
  const ConvGeometry& g = conv.geometry;
  if (is_empty(g)) return;
  const int64_t terms = g.in_channels / g.groups * g.kernel_y * g.kernel_x;
  const bool copies = needs_copy(g, conv.in_channel_stride);
  if (is_pointwise(g) && !copies && pixels_follow(conv)) {
    return for_each_group(g, terms, workers, [&](int64_t group, Workers* shared) {
      convolve_pixels(conv, Group(conv, 0, group), shared);
    });
  }
  for (int64_t image = 0; image < g.batch; ++image) {
    Image<uint8_t> source = {conv.in + image * conv.in_batch_stride, conv.in_row_stride,
                             conv.in_column_stride, conv.in_channel_stride};
    if (copies) {
      source = padded_image(g, source, align<uint8_t>(scratch), pixel_stride(g), conv.padding_value,
                            workers);
    }
    for_each_group(g, terms, workers, [&](int64_t group, Workers* shared) {
      convolve_image(conv, source, Group(conv, image, group), shared);
    });
  }
}

}  // namespace rushlight::engine
