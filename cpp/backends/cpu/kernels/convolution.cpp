#include "rushlight/backends/cpu/kernels/convolution.h"

#include <cstring>

#include "rushlight/backends/cpu/kernels/blocks.h"
#include "rushlight/backends/cpu/loops/pixels.h"

namespace rushlight::cpu {
namespace {

// An image, padded if need be, whose windows can be read without looking where they end.
struct Image {
  const float* data = nullptr;
  int64_t row_step = 0, column_step = 0, channel_step = 1;
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
// Whether pixels that a tile reads together would all meet in one set of the first-level cache.
bool pixels_collide(const ConvGeometry& g) { return g.in_channels * g.stride_x % 1024 == 0; }
int64_t pixel_step(const ConvGeometry& g) {
  return pixels_collide(g) ? g.in_channels + kPanel : g.in_channels;
}
bool is_pointwise(const ConvGeometry& g) {
  return g.kernel_y == 1 && g.kernel_x == 1 && !needs_padding(g);
}
bool is_empty(const ConvGeometry& g) {
  return g.batch <= 0 || g.out_height <= 0 || g.out_width <= 0 || g.out_channels <= 0;
}

// One group of channels of one image.
struct Group {
  int64_t image = 0;
  int64_t in_channel = 0;
  const float* weights = nullptr;
  float* out = nullptr;
  PartFinish finish;
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
  group.finish.whole = conv.finish;
  group.finish.row = image * pixels;
  group.finish.column = index * outputs;
  return group;
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
  const bool is_dense = conv.in_column_step == step && g.in_channels == step;
  if (conv.in_channel_step == 1 && is_dense) {
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
    return {in, conv.in_row_step, conv.in_column_step, 1};
  }
  CopyJob job = {&conv, in, align<float>(scratch)};
  const int64_t height = image_height(g);
  share_out(height, work_of({height, image_width(g), g.in_channels}), copy_rows, &job, workers);
  return {job.out, image_width(g) * pixel_step(g), pixel_step(g), 1};
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
  const int64_t in_row = block - y * tiling.row.blocks;
  const int64_t x = tiling.row.start(in_row);
  tile->rows = tiling.row.height(in_row);
  tile->a[0] = tiling.image.data + y * row_step + x * tile->a_step;
  tile->a[1] = tile->a[0] + kFirstRows * tile->a_step;
  return y * g.out_width + x + tile->rows;
}

void convolve_image(const Convolution& conv, const Image& source, const Group& group,
                    Workers* workers) {
  const ConvGeometry& g = conv.geometry;
  const int64_t highest = gemm_loops().rows;
  Image image = source;
  image.data += group.in_channel * image.channel_step;
  Tiling tiling = {image, &g, EvenBlocks(g.out_width, highest), false};
  tiling.pairs = g.out_width == kFirstRows && highest == 2 * kFirstRows;
  const int64_t channels = g.in_channels / g.groups;
  GemmGrid grid(g.kernel_y * g.kernel_x * channels, PanelType::Float32);
  grid.row_blocks = tiling.pairs ? (g.out_height + 1) / 2 : g.out_height * tiling.row.blocks;
  grid.rows = g.out_height * g.out_width;
  grid.columns = g.out_channels / g.groups;
  grid.tile.a_step = image.column_step * g.stride_x;
  grid.tile.k_step = image.channel_step;
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
  grid.panels = group.weights;
  grid.c = group.out;
  grid.c_step = g.out_channels;
  grid.finish = group.finish.part();
  grid.place = place_tile;
  grid.data = &tiling;
  run_blocks(grid, workers);
}

// --- 1 by 1 -------------------------------------------------------------------------------------

// Of one group of all images.
Product pointwise_product(const ConvGeometry& g) {
  Product product;
  product.rows = g.batch * g.out_height * g.out_width;
  product.depth = g.in_channels / g.groups;
  product.columns = g.out_channels / g.groups;
  product.c_step = g.out_channels;
  return product;
}

// Whether the pixels of a 1 by 1 convolution lie one after the other, as rows of a product do.
bool pixels_follow(const Convolution& conv) {
  const ConvGeometry& g = conv.geometry;
  const int64_t row = g.out_width * conv.in_column_step * g.stride_x;
  return conv.in_channel_step == 1 && conv.in_row_step * g.stride_y == row &&
         (g.batch == 1 || conv.in_batch_step == g.out_height * row);
}

// One image, or all of them if their pixels follow each other.
void pointwise(const Convolution& conv, const Group& group, void* scratch, Workers* workers) {
  const ConvGeometry& g = conv.geometry;
  Product product = pointwise_product(g);
  product.a = conv.in + group.image * conv.in_batch_step + group.in_channel;
  product.a_step = conv.in_column_step * g.stride_x;
  product.panels = group.weights;
  product.c = group.out;
  product.finish = group.finish.part();
  RowRuns runs;
  if (!pixels_follow(conv)) {
    product.rows /= g.batch;
    runs.run = g.out_width;
    runs.run_step = conv.in_row_step * g.stride_y;
  }
  multiply_runs(product, runs, scratch, convolution_scratch(g), workers);
}

// --- groups -------------------------------------------------------------------------------------

constexpr int64_t kManyGroups = 4;  // from so many on, threads take a group each

struct GroupJob {
  const Convolution* convolution;
  Image source;
  int64_t image;
  Workers* workers;  // that share a group
};

void run_groups(void* data, int64_t begin, int64_t end) {
  const GroupJob& job = *static_cast<const GroupJob*>(data);
  for (int64_t group = begin; group < end; ++group) {
    convolve_image(*job.convolution, job.source, group_of(*job.convolution, job.image, group),
                   job.workers);
  }
}

}  // namespace

size_t convolution_scratch(const ConvGeometry& g) {
  if (is_empty(g)) return 0;
  if (is_pointwise(g)) {
    RowRuns runs;
    runs.run = g.out_width;
    return pixels_collide(g) ? runs_scratch(pointwise_product(g), runs) : 0;
  }
  const int64_t floats = image_height(g) * image_width(g) * pixel_step(g);
  return static_cast<size_t>(floats) * sizeof(float) + kCacheLine;
}

void convolve(const Convolution& conv, void* scratch, Workers* workers) {
  const ConvGeometry& g = conv.geometry;
  if (is_empty(g)) return;
  const bool at_once = is_pointwise(g) && pixels_follow(conv);
  const bool packed = is_pointwise(g) && pixels_collide(g) && conv.in_channel_step == 1;
  GroupJob job = {&conv, {}, 0, workers};
  for (; job.image < (at_once ? 1 : g.batch); ++job.image) {
    if (at_once || packed) {
      for (int64_t group = 0; group < g.groups; ++group) {
        pointwise(conv, group_of(conv, job.image, group), scratch, workers);
      }
      continue;
    }
    const float* in = conv.in + job.image * conv.in_batch_step;
    job.source = {in, conv.in_row_step, conv.in_column_step, conv.in_channel_step};
    if (!is_pointwise(g)) job.source = padded_image(conv, in, scratch, workers);
    if (g.groups < kManyGroups) {
      run_groups(&job, 0, g.groups);
      continue;
    }
    job.workers = nullptr;
    const int64_t terms = g.in_channels / g.groups * g.kernel_y * g.kernel_x;
    share_out(g.groups, work_of({g.out_height, g.out_width, g.out_channels, terms}), run_groups,
              &job, workers);
  }
}

}  // namespace rushlight::cpu
