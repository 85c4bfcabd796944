#include "rushlight/backends/cpu/kernels/convolution.h"

#include <cstring>

#include "rushlight/backends/cpu/kernels/blocks.h"
#include "rushlight/backends/cpu/loops/pixels.h"

namespace rushlight::cpu {
namespace {

// An image, padded if need be, whose windows can be read without looking where they end.
struct Image {
  const float* data = nullptr;
  int64_t row_step = 0, column_step = 0;
};

int64_t reach(int64_t outs, int64_t stride, int64_t kernel, int64_t dilation) {
  return (outs - 1) * stride + (kernel - 1) * dilation + 1;
}
int64_t image_height(const ConvGeometry& g) {
  return reach(g.out_height, g.stride_y, g.kernel_y, g.dilation_y);
}
int64_t image_width(const ConvGeometry& g) {
  return reach(g.out_width, g.stride_x, g.kernel_x, g.dilation_x);
}
bool needs_padding(const ConvGeometry& g) {
  return g.pad_top != 0 || g.pad_left != 0 || image_height(g) > g.in_height ||
         image_width(g) > g.in_width;
}
// Pixels of the copy that tiles read together shall not all meet in one set of the first-level
// cache.
int64_t pixel_step(const ConvGeometry& g) {
  return g.in_channels * g.stride_x % 1024 == 0 ? g.in_channels + kPanel : g.in_channels;
}
bool is_pointwise(const ConvGeometry& g) {
  return g.kernel_y == 1 && g.kernel_x == 1 && !needs_padding(g);
}
bool is_empty(const ConvGeometry& g) {
  return g.batch <= 0 || g.out_height <= 0 || g.out_width <= 0 || g.out_channels <= 0;
}

// --- a copy of the image ------------------------------------------------------------------------

struct CopyJob {
  const Convolution* convolution;
  const float* in;
  float* out;
};

void set_zero(float* out, int64_t n) {
  std::memset(out, 0, static_cast<size_t>(n) * sizeof(float));
}

void copy_row(const CopyJob& job, int64_t row) {
  const Convolution& conv = *job.convolution;
  const ConvGeometry& g = conv.geometry;
  const int64_t step = pixel_step(g);
  const int64_t width = image_width(g);
  float* out = job.out + row * width * step;
  const int64_t y = row - g.pad_top;
  if (y < 0 || y >= g.in_height) return set_zero(out, width * step);
  const int64_t left = g.pad_left < width ? g.pad_left : width;
  const int64_t columns = width - left < g.in_width ? width - left : g.in_width;
  const float* in = job.in + y * conv.in_row_step;
  float* middle = out + left * step;
  set_zero(out, left * step);
  if (conv.in_channel_step == 1 && conv.in_column_step == step) {
    std::memcpy(middle, in, static_cast<size_t>(columns * step) * sizeof(float));
  } else if (conv.in_channel_step == 1) {
    for (int64_t x = 0; x < columns; ++x) {
      std::memcpy(middle + x * step, in + x * conv.in_column_step,
                  static_cast<size_t>(g.in_channels) * sizeof(float));
    }
  } else {
    pixel_loops().gather(in, conv.in_column_step, conv.in_channel_step, columns, g.in_channels,
                         middle, step);
  }
  set_zero(middle + columns * step, (width - left - columns) * step);
}

void copy_rows(void* data, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) copy_row(*static_cast<const CopyJob*>(data), row);
}

Image padded_image(const Convolution& conv, const float* in, void* scratch, Workers* workers) {
  const ConvGeometry& g = conv.geometry;
  if (!needs_padding(g) && conv.in_channel_step == 1) {
    return {in, conv.in_row_step, conv.in_column_step};
  }
  CopyJob job = {&conv, in, align_floats(scratch)};
  const int64_t height = image_height(g);
  share_out(height, height * image_width(g) * g.in_channels, copy_rows, &job, workers);
  return {job.out, image_width(g) * pixel_step(g), pixel_step(g)};
}

// --- tiles over the rows of an image ------------------------------------------------------------

// A tile lies on one row of results, or on two if they have just the width of its halves.
struct Tiling {
  Image image;
  const ConvGeometry* geometry;
  EvenBlocks row;  // blocks of a row
  bool pairs;
};

int64_t place_tile(const void* data, int64_t block, GemmTile* tile) {
  const Tiling& tiling = *static_cast<const Tiling*>(data);
  const ConvGeometry& g = *tiling.geometry;
  const int64_t row_step = tiling.image.row_step * g.stride_y;
  if (tiling.pairs) {
    const int64_t y = 2 * block;
    tile->rows = y + 1 < g.out_height ? 2 * kFirstRows : kFirstRows;
    tile->a[0] = tiling.image.data + y * row_step;
    tile->a[1] = tile->a[0] + row_step;
    return y * kFirstRows + tile->rows;
  }
  const int64_t y = block / tiling.row.blocks;
  const int64_t x = tiling.row.start(block % tiling.row.blocks);
  tile->rows = tiling.row.height(block % tiling.row.blocks);
  tile->a[0] = tiling.image.data + y * row_step + x * tile->a_step;
  tile->a[1] = tile->a[0] + kFirstRows * tile->a_step;
  return y * g.out_width + x + tile->rows;
}

void convolve_image(const Convolution& conv, const Image& image, const float* weights, float* out,
                    const Finish& finish, Workers* workers) {
  const ConvGeometry& g = conv.geometry;
  const int64_t highest = gemm_loops().rows;
  Tiling tiling = {image, &g, EvenBlocks(g.out_width, highest), false};
  tiling.pairs = g.out_width == kFirstRows && highest == 2 * kFirstRows;
  const int64_t channels = g.in_channels / g.groups;
  BlockGrid grid;
  grid.row_blocks = tiling.pairs ? (g.out_height + 1) / 2 : g.out_height * tiling.row.blocks;
  grid.terms = g.kernel_y * g.kernel_x * channels;
  grid.rows = g.out_height * g.out_width;
  grid.columns = g.out_channels / g.groups;
  grid.tile.a_step = image.column_step * g.stride_x;
  grid.tile.taps_y = g.kernel_y;
  grid.tile.tap_y_step = image.row_step * g.dilation_y;
  if (channels == image.column_step && g.dilation_x == 1) {
    grid.tile.depth = g.kernel_x * channels;  // a row of taps lies in one piece
  } else {
    grid.tile.depth = channels;
    grid.tile.taps_x = g.kernel_x;
    grid.tile.tap_x_step = image.column_step * g.dilation_x;
  }
  grid.set_group(image_height(g) * image_width(g) * channels * 4 / grid.row_blocks);
  grid.panels = weights;
  grid.c = out;
  grid.c_step = g.out_channels;
  grid.finish = finish;
  grid.place = place_tile;
  grid.data = &tiling;
  run_blocks(grid, workers);
}

// --- 1 by 1 -------------------------------------------------------------------------------------

// Of one image and group; the runs are its rows.
Product pointwise_product(const ConvGeometry& g) {
  Product product;
  product.rows = g.out_height * g.out_width;
  product.depth = g.in_channels / g.groups;
  product.columns = g.out_channels / g.groups;
  product.c_step = g.out_channels;
  return product;
}

void pointwise(const Convolution& conv, const float* in, const float* weights, float* out,
               const Finish& finish, void* scratch, Workers* workers) {
  const ConvGeometry& g = conv.geometry;
  Product product = pointwise_product(g);
  product.a = in;
  product.a_step = conv.in_column_step * g.stride_x;
  product.panels = weights;
  product.c = out;
  product.finish = finish;
  RowRuns runs;
  runs.run_step = conv.in_row_step * g.stride_y;
  if (runs.run_step != g.out_width * product.a_step) runs.run = g.out_width;
  multiply_runs(product, runs, scratch, runs_scratch(product, runs), workers);
}

}  // namespace

size_t convolution_scratch(const ConvGeometry& g) {
  if (is_empty(g)) return 0;
  // Of a 1 by 1 convolution too, whose input may be channels first.
  const int64_t floats = image_height(g) * image_width(g) * pixel_step(g);
  const size_t image = static_cast<size_t>(floats) * sizeof(float) + kCacheLine;
  RowRuns runs;
  runs.run = g.out_width;
  const size_t packed = is_pointwise(g) ? runs_scratch(pointwise_product(g), runs) : 0;
  return image > packed ? image : packed;
}

void convolve(const Convolution& conv, void* scratch, Workers* workers) {
  const ConvGeometry& g = conv.geometry;
  if (is_empty(g)) return;
  const int64_t in_channels = g.in_channels / g.groups;
  const int64_t out_channels = g.out_channels / g.groups;
  const int64_t group_floats =
      panels_of(out_channels) * kPanel * in_channels * g.kernel_y * g.kernel_x;
  const bool product = is_pointwise(g) && conv.in_channel_step == 1;
  const int64_t pixels = g.out_height * g.out_width;
  for (int64_t n = 0; n < g.batch; ++n) {
    const float* in = conv.in + n * conv.in_batch_step;
    Image image;
    if (!product) image = padded_image(conv, in, scratch, workers);
    for (int64_t group = 0; group < g.groups; ++group) {
      const PartFinish part = {conv.finish, n * pixels, group * out_channels};
      const float* weights = conv.weights + group * group_floats;
      float* out = conv.out + n * pixels * g.out_channels + group * out_channels;
      if (product) {
        pointwise(conv, in + group * in_channels, weights, out, part.part(), scratch, workers);
        continue;
      }
      Image channels = image;
      channels.data += group * in_channels;
      convolve_image(conv, channels, weights, out, part.part(), workers);
    }
  }
}

}  // namespace rushlight::cpu
