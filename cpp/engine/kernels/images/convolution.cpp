#include "rushlight/engine/kernels/images/convolution.h"

#include "rushlight/engine/kernels/images/image.h"
#include "rushlight/engine/kernels/products/row_blocks.h"

namespace rushlight::engine {
namespace {

// Whether the pixels that a tile reads together all fall into one set of the first-level cache.
bool pixels_collide(const ConvGeometry& g) { return g.in_channels * g.stride_x % 1024 == 0; }
int64_t pixel_stride(const ConvGeometry& g) {
  return pixels_collide(g) ? g.in_channels + kPanel : g.in_channels;
}

// One group of channels of one image.
struct Group {
  int64_t image = 0;
  int64_t in_channel = 0;
  const float* weights = nullptr;
  float* out = nullptr;
  PartEpilogue epilogue;
};

Group group_of(const Convolution& conv, int64_t image, int64_t index) {
  const ConvGeometry& g = conv.geometry;
  const int64_t inputs = g.in_channels / g.groups;
  const int64_t outputs = g.out_channels / g.groups;
  const int64_t pixels = g.out_height * g.out_width;
  Group group;
  group.image = image;
  group.in_channel = index * inputs;
  group.weights =
      conv.weights + index * panels_of(outputs) * kPanel * inputs * g.kernel_y * g.kernel_x;
  group.out = conv.out + image * pixels * g.out_channels + index * outputs;
  group.epilogue.whole = conv.epilogue;
  group.epilogue.row = image * pixels;
  group.epilogue.column = index * outputs;
  return group;
}

// The image as tiles can read it: a copy, if it needs padding or its channels are not dense; else
// itself.
Image<float> readable_image(const Convolution& conv, const float* in, void* scratch,
                            Workers* workers) {
  const ConvGeometry& g = conv.geometry;
  const Image<float> image = {in, conv.in_row_stride, conv.in_column_stride,
                              conv.in_channel_stride};
  if (is_pointwise(g) || (!needs_padding(g) && conv.in_channel_stride == 1)) return image;
  return padded_image(g, image, align<float>(scratch), pixel_stride(g), 0, workers);
}

void convolve_image(const Convolution& conv, const Image<float>& source, const Group& group,
                    Workers* workers) {
  const ConvGeometry& g = conv.geometry;
  Image<float> image = source;
  image.data += group.in_channel * image.channel_stride;
  const Tiling<float> tiling(image, g, gemm_loops().rows);
  const int64_t channels = g.in_channels / g.groups;
  GemmGrid grid(g.kernel_y * g.kernel_x * channels);
  grid.row_blocks = tiling.blocks();
  grid.rows = g.out_height * g.out_width;
  grid.columns = g.out_channels / g.groups;
  grid.tile.a_stride = image.column_stride * g.stride_x;
  grid.tile.k_stride = image.channel_stride;
  grid.tile.taps_y = g.kernel_y;
  grid.tile.tap_y_stride = image.row_stride * g.dilation_y;
  if (channels == image.column_stride && g.dilation_x == 1) {
    grid.tile.depth = g.kernel_x * channels;  // the taps of a row are dense
  } else {
    grid.tile.depth = channels;
    grid.tile.taps_x = g.kernel_x;
    grid.tile.tap_x_stride = image.column_stride * g.dilation_x;
  }
  grid.set_group(image_height(g) * image_width(g) * channels * 4 / grid.row_blocks, workers);
  grid.panels = group.weights;
  grid.c = group.out;
  grid.c_stride = g.out_channels;
  grid.epilogue = group.epilogue.part();
  grid.place = place_tile<float, GemmTile>;
  grid.data = &tiling;
  run_blocks(grid, workers);
}

// --- 1 by 1 -------------------------------------------------------------------------------------

// The product of one group, for one image or for all of them.
Product pointwise_product(const ConvGeometry& g) {
  Product product;
  product.rows = g.batch * g.out_height * g.out_width;
  product.depth = g.in_channels / g.groups;
  product.columns = g.out_channels / g.groups;
  product.c_stride = g.out_channels;
  return product;
}

// Multiplies one image, or all of them if their pixels are dense.
void pointwise(const Convolution& conv, const Group& group, void* scratch, Workers* workers) {
  const ConvGeometry& g = conv.geometry;
  Product product = pointwise_product(g);
  product.a = conv.in + group.image * conv.in_batch_stride + group.in_channel;
  product.a_stride = conv.in_column_stride * g.stride_x;
  product.panels = group.weights;
  product.c = group.out;
  product.epilogue = group.epilogue.part();
  RowRuns runs;
  if (!pixels_follow(conv)) {
    product.rows /= g.batch;
    runs.run = g.out_width;
    runs.run_stride = conv.in_row_stride * g.stride_y;
  }
  multiply_runs(product, runs, scratch, convolution_scratch(g), workers);
}

}  // namespace

size_t convolution_scratch(const ConvGeometry& g) {
  if (is_empty(g)) return 0;
  if (is_pointwise(g)) {
    RowRuns runs;
    runs.run = g.out_width;
    return pixels_collide(g) ? row_blocks_scratch(pointwise_product(g), runs) : 0;
  }
  return static_cast<size_t>(padded_size(g, pixel_stride(g))) * sizeof(float) + kCacheLine;
}

void convolve(const Convolution& conv, void* scratch, Workers* workers) {
  const ConvGeometry& g = conv.geometry;
  if (is_empty(g)) return;
  const bool at_once = is_pointwise(g) && conv.in_channel_stride == 1 && pixels_follow(conv);
  const bool packed = is_pointwise(g) && pixels_collide(g) && conv.in_channel_stride == 1;
  const int64_t terms = g.in_channels / g.groups * g.kernel_y * g.kernel_x;
  for (int64_t image = 0; image < (at_once ? 1 : g.batch); ++image) {
    if (at_once || packed) {
      for (int64_t group = 0; group < g.groups; ++group) {
        pointwise(conv, group_of(conv, image, group), scratch, workers);
      }
      continue;
    }
    const Image<float> source =
        readable_image(conv, conv.in + image * conv.in_batch_stride, scratch, workers);
    for_each_group(g, terms, workers, [&](int64_t group, Workers* shared) {
      convolve_image(conv, source, group_of(conv, image, group), shared);
    });
  }
}

}  // namespace rushlight::engine
