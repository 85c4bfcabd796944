#include "rushlight/engine/loops/images/depthwise.h"
#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/kernels/products/blocks.h"

namespace rushlight::engine {
namespace {

// How many channels are taken together: enough for few calls, and few enough to share out small
// images.
constexpr int64_t kChannels = 256;

struct Depthwise {
  const Convolution* convolution;
  const DepthwiseFn* tiles;  // by DepthwiseEdge; nullptr: point by point
  int64_t rows;              // of a tile
  int64_t bands;             // of `rows` rows, in one image
  int64_t chunks;            // of channels
};

// Neighbouring rows of results, and some of their channels.
struct Band {
  const Convolution* convolution;
  const float* in;  // the image
  float* out;       // the first row
  int64_t y, rows;
  int64_t channel, channels;
};

uint32_t lowest_bits(int64_t n) {
  if (n <= 0) return 0;
  return n >= 32 ? UINT32_MAX : (uint32_t{1} << n) - 1;
}

// Bits 0..n-1, set where start + bit is within 0..size-1.
uint32_t bits_inside(int64_t start, int64_t n, int64_t size) {
  return lowest_bits(least(n, size - start)) & ~lowest_bits(-start);
}

DepthwiseTile tile_of(const Depthwise& job, const Band& band) {
  const Convolution& conv = *band.convolution;
  const ConvGeometry& g = conv.geometry;
  const int64_t y = band.y * g.stride_y - g.pad_top;
  DepthwiseTile tile;
  tile.row_stride = conv.in_row_stride;
  tile.column_stride = conv.in_column_stride;
  tile.rows_inside = bits_inside(y, (job.rows - 1) * g.stride_y + g.kernel_y, g.in_height);
  tile.in = band.in + y * conv.in_row_stride + band.channel;
  tile.weights = conv.weights + band.channel;
  tile.tap_stride = panels_of(g.out_channels) * kPanel;
  tile.bias = conv.epilogue.bias == nullptr ? nullptr : conv.epilogue.bias + band.channel;
  tile.out_stride = g.out_channels;
  tile.out_row_stride = g.out_width * g.out_channels;
  tile.rows = band.rows;
  tile.channels = band.channels;
  tile.low = conv.epilogue.low;
  tile.high = conv.epilogue.high;
  return tile;
}

void band_by_tiles(const Depthwise& job, const Band& band) {
  const Convolution& conv = *band.convolution;
  const ConvGeometry& g = conv.geometry;
  DepthwiseTile tile = tile_of(job, band);
  const float* in = tile.in;
  const int64_t columns = (kDepthwisePixels - 1) * g.stride_x + g.kernel_x;
  for (int64_t x = 0; x < g.out_width; x += kDepthwisePixels) {
    const int64_t first = x * g.stride_x - g.pad_left;
    tile.columns_inside = bits_inside(first, columns, g.in_width);
    tile.in = in + first * conv.in_column_stride;
    tile.out = band.out + x * g.out_channels + band.channel;
    tile.pixels = least(g.out_width - x, kDepthwisePixels);
    // If the padding is larger than the kernel, columns beside the outermost lie outside, too.
    DepthwiseEdge edge = DepthwiseEdge::None;
    if (first < 0 || first + columns > g.in_width) edge = DepthwiseEdge::Sides;
    const bool deep = first + columns - g.in_width >= g.kernel_x;
    if (tile.pixels < kDepthwisePixels || deep) edge = DepthwiseEdge::Any;
    job.tiles[static_cast<size_t>(edge)](tile);
  }
}

void row_by_points(const Band& row) {
  const Convolution& conv = *row.convolution;
  const ConvGeometry& g = conv.geometry;
  const Taps taps_y(row.y * g.stride_y - g.pad_top, g.dilation_y, g.kernel_y, g.in_height);
  const float* in = row.in + taps_y.position * conv.in_row_stride;
  DepthwisePoint point;
  point.y_stride = conv.in_row_stride * g.dilation_y;
  point.x_stride = conv.in_column_stride * g.dilation_x;
  point.taps_y = taps_y.count;
  point.tap_stride = panels_of(g.out_channels) * kPanel;
  point.weights_y_stride = g.kernel_x * point.tap_stride;
  const float* weights = conv.weights + taps_y.first * point.weights_y_stride + row.channel;
  point.bias = conv.epilogue.bias == nullptr ? nullptr : conv.epilogue.bias + row.channel;
  point.channel = row.channel;
  point.channels = row.channels;
  point.multiplier = g.out_channels / g.in_channels;
  point.low = conv.epilogue.low;
  point.high = conv.epilogue.high;
  for (int64_t x = 0; x < g.out_width; ++x) {
    const Taps taps(x * g.stride_x - g.pad_left, g.dilation_x, g.kernel_x, g.in_width);
    point.taps_x = taps.count;
    point.in = in + taps.position * conv.in_column_stride;
    point.weights = weights + taps.first * point.tap_stride;
    point.out = row.out + x * g.out_channels + row.channel;
    depthwise_loops().point(point);
  }
}

void run_bands(void* data, int64_t begin, int64_t end) {
  const Depthwise& job = *static_cast<const Depthwise*>(data);
  const Convolution& conv = *job.convolution;
  const ConvGeometry& g = conv.geometry;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t image = item / job.chunks / job.bands;
    Band band;
    band.convolution = &conv;
    band.y = item / job.chunks % job.bands * job.rows;
    band.rows = least(job.rows, g.out_height - band.y);
    band.channel = item % job.chunks * kChannels;
    band.channels = least(kChannels, g.out_channels - band.channel);
    band.in = conv.in + image * conv.in_batch_stride;
    const int64_t pixel = (image * g.out_height + band.y) * g.out_width;
    band.out = conv.out + pixel * g.out_channels;
    if (job.tiles == nullptr) {
      row_by_points(band);
    } else {
      band_by_tiles(job, band);
    }
    if (conv.epilogue.block != nullptr) {
      conv.epilogue.block(conv.epilogue.data, pixel, band.rows * g.out_width, band.channel,
                          band.channels);
    }
  }
}

}  // namespace

void convolve_depthwise(const Convolution& convolution, Workers* workers) {
  const ConvGeometry& g = convolution.geometry;
  Depthwise job = {&convolution, nullptr, 1, 0, (g.out_channels + kChannels - 1) / kChannels};
  const bool square = g.kernel_x == g.kernel_y && g.stride_x == g.stride_y;
  const bool odd = g.kernel_x == 3 || g.kernel_x == 5 || g.kernel_x == 7;
  const bool dilated = g.dilation_x != 1 || g.dilation_y != 1;
  // Tiles form addresses outside the image, which must not lie far from it.
  const bool is_near = g.pad_top < g.kernel_y && g.pad_left < g.kernel_x;
  const bool multiplied = g.out_channels != g.in_channels;
  if (square && odd && g.stride_x <= 2 && !dilated && is_near && !multiplied) {
    const auto width = static_cast<size_t>(g.kernel_x / 2 - 1);
    job.tiles = depthwise_loops().tile[width][g.stride_x - 1];
    job.rows = depthwise_loops().rows[width];
    if (job.tiles[0] == nullptr) {
      job.tiles = nullptr;
      job.rows = 1;
    }
  }
  job.bands = (g.out_height + job.rows - 1) / job.rows;
  share_out(g.batch * job.bands * job.chunks,
            work_of({g.batch, g.out_height, g.out_width, g.out_channels, g.kernel_y, g.kernel_x}),
            run_bands, &job, workers);
}

}  // namespace rushlight::engine
