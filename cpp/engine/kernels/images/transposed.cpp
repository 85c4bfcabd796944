#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/kernels/products/row_blocks.h"
#include "rushlight/engine/loops/images/pixels.h"

namespace rushlight::engine {
namespace {

int64_t columns_of(const ConvGeometry& g) {
  return g.kernel_y * g.kernel_x * (g.out_channels / g.groups);
}

// The columns of one image and group, as a product of its pixels and the panels.
Product product_of(const ConvGeometry& g) {
  Product product;
  product.rows = g.in_height * g.in_width;
  product.depth = g.in_channels / g.groups;
  product.columns = product.c_stride = columns_of(g);
  return product;
}

RowRuns runs_of(const Convolution& convolution) {
  RowRuns runs;
  runs.run = convolution.geometry.in_width;
  runs.run_stride = convolution.in_row_stride;
  return runs;
}

// Adds the columns of one group of one image to the result.
struct Job {
  const Convolution* convolution;
  const float* columns;
  float* out;
  Epilogue epilogue;
};

// The pixels of a row that tap `tap_x` of pixels of the input adds to.
void add_tap(const Job& job, const float* columns, int64_t tap_x, float* out) {
  const ConvGeometry& g = job.convolution->geometry;
  const int64_t to = tap_x * g.dilation_x - g.pad_left;  // the position to which pixel 0 adds
  int64_t first = to < 0 ? (-to + g.stride_x - 1) / g.stride_x : 0;
  int64_t end = to < g.out_width ? (g.out_width - to + g.stride_x - 1) / g.stride_x : 0;
  if (end > g.in_width) end = g.in_width;
  if (first >= end) return;
  pixel_loops().add(columns + first * columns_of(g), columns_of(g), end - first,
                    g.out_channels / g.groups, out + (to + first * g.stride_x) * g.out_channels,
                    g.stride_x * g.out_channels);
}

void add_row(const Job& job, int64_t y) {
  const ConvGeometry& g = job.convolution->geometry;
  const int64_t channels = g.out_channels / g.groups;
  float* out = job.out + y * g.out_width * g.out_channels;
  for (int64_t x = 0; x < g.out_width; ++x) {
    for (int64_t c = 0; c < channels; ++c) {
      out[x * g.out_channels + c] = job.epilogue.bias == nullptr ? 0.0f : job.epilogue.bias[c];
    }
  }
  for (int64_t tap_y = 0; tap_y < g.kernel_y; ++tap_y) {
    const int64_t from = y + g.pad_top - tap_y * g.dilation_y;
    if (from < 0 || from % g.stride_y != 0 || from / g.stride_y >= g.in_height) continue;
    for (int64_t tap_x = 0; tap_x < g.kernel_x; ++tap_x) {
      const int64_t tap = tap_y * g.kernel_x + tap_x;
      const int64_t pixel = from / g.stride_y * g.in_width;
      add_tap(job, job.columns + pixel * columns_of(g) + tap * channels, tap_x, out);
    }
  }
  for (int64_t x = 0; x < g.out_width; ++x) {
    pixel_loops().clamp(out + x * g.out_channels, channels, job.epilogue.low, job.epilogue.high);
  }
  if (job.epilogue.block != nullptr) {
    job.epilogue.block(job.epilogue.data, y * g.out_width, g.out_width, 0, channels);
  }
}

void add_rows(void* data, int64_t begin, int64_t end) {
  for (int64_t y = begin; y < end; ++y) add_row(*static_cast<const Job*>(data), y);
}

size_t columns_bytes(const ConvGeometry& g) {
  const int64_t floats = g.in_height * g.in_width * columns_of(g);
  return static_cast<size_t>(floats) * sizeof(float) + kCacheLine;
}

}  // namespace

size_t transposed_scratch(const ConvGeometry& geometry) {
  RowRuns runs;
  runs.run = geometry.in_width;
  return columns_bytes(geometry) + row_blocks_scratch(product_of(geometry), runs);
}

void convolve_transposed(const Convolution& convolution, void* scratch, Workers* workers) {
  const ConvGeometry& g = convolution.geometry;
  const RowRuns runs = runs_of(convolution);
  Product product = product_of(g);
  product.a_stride = convolution.in_column_stride;
  product.c = align<float>(scratch);
  char* packing = static_cast<char*>(scratch) + columns_bytes(g);
  const int64_t in_channels = g.in_channels / g.groups;
  const int64_t out_channels = g.out_channels / g.groups;
  const int64_t group_floats = panels_of(product.columns) * kPanel * product.depth;
  const int64_t pixels = g.out_height * g.out_width;
  if (pixels * g.out_channels == 0) return;
  for (int64_t image = 0; image < g.batch; ++image) {
    for (int64_t group = 0; group < g.groups; ++group) {
      product.a = convolution.in + image * convolution.in_batch_stride + group * in_channels;
      product.panels = convolution.weights + group * group_floats;
      multiply_runs(product, runs, packing, row_blocks_scratch(product, runs), workers);
      const PartEpilogue part = {convolution.epilogue, image * pixels, group * out_channels};
      Job job = {&convolution, product.c,
                 convolution.out + image * pixels * g.out_channels + group * out_channels,
                 part.part()};
      share_out(g.out_height, work_of({product.rows, product.columns}), add_rows, &job, workers);
    }
  }
}

}  // namespace rushlight::engine
