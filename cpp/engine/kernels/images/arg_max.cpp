#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/kernels/products/blocks.h"

namespace rushlight::engine {
namespace {

void find_row(const ArgMax& a, int64_t row) {
  const ConvGeometry& g = a.geometry;
  const int64_t channels = g.in_channels;
  const int64_t y = row / g.out_height * g.in_height + row % g.out_height * g.kernel_y;
  for (int64_t i = 0; i < g.out_width; ++i) {
    const float* in = a.in + (y * g.in_width + i * g.kernel_x) * channels;
    const int64_t to = (row * g.out_width + i) * channels;
    for (int64_t c = 0; c < channels; ++c) {
      float greatest = in[c];
      int64_t place = 0;
      for (int64_t tap = 1; tap < g.kernel_y * g.kernel_x; ++tap) {
        const int64_t pixel = tap / g.kernel_x * g.in_width + tap % g.kernel_x;
        const float x = in[pixel * channels + c];
        if (!(x > greatest) && (x == x || greatest != greatest)) continue;
        greatest = x;
        place = tap;
      }
      a.out[to + c] = greatest;
      a.places[to + c] = place;
    }
  }
}

void find_rows(void* data, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) find_row(*static_cast<const ArgMax*>(data), row);
}

}  // namespace

void arg_max(const ArgMax& maximum, Workers* workers) {
  const ConvGeometry& g = maximum.geometry;
  ArgMax job = maximum;
  const int64_t rows = g.batch * g.out_height;
  const double work = work_of({rows, g.out_width, g.in_channels, g.kernel_y, g.kernel_x});
  share_out(rows, work, find_rows, &job, workers);
}

}  // namespace rushlight::engine
