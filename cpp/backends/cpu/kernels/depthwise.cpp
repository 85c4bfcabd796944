#include "rushlight/backends/cpu/kernels/convolution.h"
#include "rushlight/backends/cpu/kernels/blocks.h"
#include "rushlight/backends/cpu/loops/depthwise.h"

namespace rushlight::cpu {
namespace {

// Channels that are taken together: so many that few calls are needed, and so few that rows of
// small images can be shared out.
constexpr int64_t kChannels = 256;

struct Depthwise {
  const Convolution* convolution;
  DepthwiseFn whole, edge;  // nullptr: point by point
  int64_t chunks;           // of channels
};

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// A row of results, of some of its channels.
struct Row {
  const Convolution* convolution;
  Taps taps_y;        // within the image
  const float* in;    // image row of the first of them
  const float* weights;
  float* out;
  int64_t channel, channels;
};

DepthwiseTile tile_of(const Row& row) {
  const Convolution& conv = *row.convolution;
  DepthwiseTile tile;
  tile.row_step = conv.in_row_step * conv.geometry.dilation_y;
  tile.column_step = conv.in_column_step;
  tile.taps_y = row.taps_y.count;
  tile.weights = row.weights + row.channel;
  tile.tap_step = panels_of(conv.geometry.out_channels) * kPanel;
  tile.bias = conv.finish.bias == nullptr ? nullptr : conv.finish.bias + row.channel;
  tile.out_step = conv.geometry.out_channels;
  tile.channels = row.channels;
  tile.low = conv.finish.low;
  tile.high = conv.finish.high;
  return tile;
}

void row_by_tiles(const Depthwise& job, const Row& row) {
  const Convolution& conv = *row.convolution;
  const ConvGeometry& g = conv.geometry;
  DepthwiseTile tile = tile_of(row);
  const int64_t columns = (kDepthwisePixels - 1) * g.stride_x + g.kernel_x;
  const uint32_t all = (1u << columns) - 1;
  for (int64_t x = 0; x < g.out_width; x += kDepthwisePixels) {
    const int64_t first = x * g.stride_x - g.pad_left;
    const int64_t left = first < 0 ? least(-first, columns) : 0;
    const int64_t end = least(columns, g.in_width - first);
    tile.inside = end <= left ? 0 : (all >> (columns - end) >> left << left);
    tile.in = row.in + first * conv.in_column_step + row.channel;
    tile.out = row.out + x * g.out_channels + row.channel;
    tile.pixels = least(g.out_width - x, kDepthwisePixels);
    const bool whole = tile.inside == all && tile.pixels == kDepthwisePixels;
    (whole ? job.whole : job.edge)(tile);
  }
}

void row_by_points(const Row& row) {
  const Convolution& conv = *row.convolution;
  const ConvGeometry& g = conv.geometry;
  DepthwisePoint point;
  point.y_step = conv.in_row_step * g.dilation_y;
  point.x_step = conv.in_column_step * g.dilation_x;
  point.taps_y = row.taps_y.count;
  point.tap_step = panels_of(g.out_channels) * kPanel;
  point.weights_y_step = g.kernel_x * point.tap_step;
  point.bias = conv.finish.bias == nullptr ? nullptr : conv.finish.bias + row.channel;
  point.channel = row.channel;
  point.channels = row.channels;
  point.multiplier = g.out_channels / g.in_channels;
  point.low = conv.finish.low;
  point.high = conv.finish.high;
  for (int64_t x = 0; x < g.out_width; ++x) {
    const Taps taps(x * g.stride_x - g.pad_left, g.dilation_x, g.kernel_x, g.in_width);
    point.taps_x = taps.count;
    point.in = row.in + taps.position * conv.in_column_step;
    point.weights = row.weights + taps.first * point.tap_step + row.channel;
    point.out = row.out + x * g.out_channels + row.channel;
    depthwise_loops().point(point);
  }
}

void run_rows(void* data, int64_t begin, int64_t end) {
  const Depthwise& job = *static_cast<const Depthwise*>(data);
  const Convolution& conv = *job.convolution;
  const ConvGeometry& g = conv.geometry;
  const int64_t tap_row = g.kernel_x * panels_of(g.out_channels) * kPanel;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t y = item / job.chunks;  // of all images, one below the other
    const Taps taps(y % g.out_height * g.stride_y - g.pad_top, g.dilation_y, g.kernel_y,
                    g.in_height);
    Row row;
    row.convolution = &conv;
    row.taps_y = taps;
    row.in = conv.in + y / g.out_height * conv.in_batch_step + taps.position * conv.in_row_step;
    row.weights = conv.weights + taps.first * tap_row;
    row.out = conv.out + y * g.out_width * g.out_channels;
    row.channel = item % job.chunks * kChannels;
    row.channels = least(kChannels, g.out_channels - row.channel);
    if (job.whole == nullptr) {
      row_by_points(row);
    } else {
      row_by_tiles(job, row);
    }
    if (conv.finish.block != nullptr) {
      conv.finish.block(conv.finish.data, y * g.out_width, g.out_width, row.channel, row.channels);
    }
  }
}

}  // namespace

void convolve_depthwise(const Convolution& convolution, Workers* workers) {
  const ConvGeometry& g = convolution.geometry;
  Depthwise job = {&convolution, nullptr, nullptr, (g.out_channels + kChannels - 1) / kChannels};
  const bool odd = g.kernel_x == 3 || g.kernel_x == 5 || g.kernel_x == 7;
  if (odd && g.stride_x <= 2 && g.dilation_x == 1 && g.out_channels == g.in_channels) {
    const auto width = static_cast<size_t>(g.kernel_x / 2 - 1);
    job.whole = depthwise_loops().whole[width][g.stride_x - 1];
    job.edge = depthwise_loops().edge[width][g.stride_x - 1];
  }
  const int64_t rows = g.batch * g.out_height;
  share_out(rows * job.chunks, rows * g.out_width * g.out_channels * g.kernel_y * g.kernel_x,
            run_rows, &job, workers);
}

}  // namespace rushlight::cpu
