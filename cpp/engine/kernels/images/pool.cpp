#include <type_traits>

#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/kernels/products/blocks.h"
#include "rushlight/engine/kernels/rows/quantized.h"
#include "rushlight/engine/loops/images/pixels.h"
#include "rushlight/engine/loops/rows/bytes.h"

namespace rushlight::engine {
namespace {

constexpr int64_t kChannels = 256;  // that one task takes

template <typename P>
struct Job {
  const P* pooling;
  int64_t chunks;  // of channels
};

// How many taps an average counts along one dimension if it counts padding: both sides have the
// same padding, and a window that reaches beyond it is cut off.
int64_t padded_taps(int64_t start, int64_t dilation, int64_t kernel, int64_t size, int64_t pad) {
  const int64_t room = (size + pad - start + dilation - 1) / dilation;
  return room < kernel ? room : kernel;
}

void pool_window(const Pooling& p, const PoolWindow<float>& window, int64_t count, int64_t channels,
                 float* out) {
  if (p.kind == Pool::Max) return pixel_loops().max(window, channels, out);
  pixel_loops().sum(window, channels, 1.0f / static_cast<float>(count), out);
}

void pool_window(const QuantizedPooling& p, const PoolWindow<uint8_t>& window, int64_t count,
                 int64_t channels, uint8_t* out) {
  if (p.kind == Pool::Max) return byte_loops().max(window, channels, out);
  ByteAverage average;
  average.start = static_cast<int32_t>(-p.in_zero_point * window.taps_y * window.taps_x);
  average.multiplier = p.multiplier / static_cast<float>(count);
  average.requantize = p.requantize;
  if (p.adds_zero_point_first) {
    average.offset = static_cast<float>(p.requantize.zero_point);
    average.requantize.zero_point = 0;
  }
  byte_loops().average(window, average, channels, out);
}

// Some channels of a row of results.
template <typename P>
void pool_row(const P& p, int64_t row, int64_t channel, int64_t channels) {
  const ConvGeometry& g = p.geometry;
  const int64_t y = row % g.out_height * g.stride_y - g.pad_top;
  const Taps taps_y(y, g.dilation_y, g.kernel_y, g.in_height);
  const int64_t rows = padded_taps(y, g.dilation_y, g.kernel_y, g.in_height, g.pad_top);
  PoolWindow<std::decay_t<decltype(*p.in)>> window;
  window.taps_y = taps_y.count;
  window.y_stride = g.dilation_y * g.in_width * g.in_channels;
  window.x_stride = g.dilation_x * g.in_channels;
  const int64_t in_row = row / g.out_height * g.in_height + taps_y.position;
  const auto* in = p.in + in_row * g.in_width * g.in_channels + channel;
  auto* out = p.out + row * g.out_width * g.in_channels + channel;
  for (int64_t i = 0; i < g.out_width; ++i) {
    const int64_t x = i * g.stride_x - g.pad_left;
    const Taps taps_x(x, g.dilation_x, g.kernel_x, g.in_width);
    window.taps_x = taps_x.count;
    window.in = in + taps_x.position * g.in_channels;
    int64_t count = taps_y.count * taps_x.count;
    if (p.count_padding) {
      count = rows * padded_taps(x, g.dilation_x, g.kernel_x, g.in_width, g.pad_left);
    }
    if (p.divisor != 0) count = p.divisor;
    pool_window(p, window, count, channels, out);
    out += g.in_channels;
  }
}

template <typename P>
void pool_rows(void* data, int64_t begin, int64_t end) {
  const auto& job = *static_cast<const Job<P>*>(data);
  const int64_t all = job.pooling->geometry.in_channels;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t channel = item % job.chunks * kChannels;
    const int64_t left = all - channel;
    pool_row(*job.pooling, item / job.chunks, channel, left < kChannels ? left : kChannels);
  }
}

template <typename P>
void share_rows(const P& pooling, Workers* workers) {
  const ConvGeometry& g = pooling.geometry;
  Job<P> job = {&pooling, (g.in_channels + kChannels - 1) / kChannels};
  const int64_t rows = g.batch * g.out_height;
  share_out(rows * job.chunks, work_of({rows, g.out_width, g.in_channels, g.kernel_y, g.kernel_x}),
            pool_rows<P>, &job, workers);
}

}  // namespace

void pool(const Pooling& pooling, Workers* workers) { share_rows(pooling, workers); }
void pool(const QuantizedPooling& pooling, Workers* workers) { share_rows(pooling, workers); }

}  // namespace rushlight::engine
