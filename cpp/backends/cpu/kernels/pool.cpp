#include "rushlight/backends/cpu/kernels/blocks.h"
#include "rushlight/backends/cpu/kernels/convolution.h"
#include "rushlight/backends/cpu/loops/pixels.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kChannels = 256;  // that are taken together

struct Job {
  const Pooling* pooling;
  int64_t chunks;  // of channels
};

// How many taps count in an average along one dimension, padding included: the image is padded alike
// on both sides, and a window that reaches further is cut off there.
int64_t padded_taps(int64_t start, int64_t dilation, int64_t kernel, int64_t size, int64_t pad) {
  const int64_t room = (size + pad - start + dilation - 1) / dilation;
  return room < kernel ? room : kernel;
}

void pool_pixel(const Pooling& p, int64_t pixel, int64_t channel, int64_t channels) {
  const ConvGeometry& g = p.geometry;
  const int64_t image = pixel / (g.out_height * g.out_width);
  const int64_t y = pixel / g.out_width % g.out_height * g.stride_y - g.pad_top;
  const int64_t x = pixel % g.out_width * g.stride_x - g.pad_left;
  const Taps taps_y(y, g.dilation_y, g.kernel_y, g.in_height);
  const Taps taps_x(x, g.dilation_x, g.kernel_x, g.in_width);
  PoolWindow window;
  const int64_t first = (image * g.in_height + taps_y.position) * g.in_width + taps_x.position;
  window.in = p.in + first * g.in_channels + channel;
  window.taps_y = taps_y.count;
  window.taps_x = taps_x.count;
  window.y_step = g.dilation_y * g.in_width * g.in_channels;
  window.x_step = g.dilation_x * g.in_channels;
  float* out = p.out + pixel * g.in_channels + channel;
  if (p.kind == Pool::Max) return pixel_loops().max(window, channels, out);
  int64_t count = p.divisor;
  if (count == 0 && p.count_padding) {
    count = padded_taps(y, g.dilation_y, g.kernel_y, g.in_height, g.pad_top) *
            padded_taps(x, g.dilation_x, g.kernel_x, g.in_width, g.pad_left);
  } else if (count == 0) {
    count = taps_y.count * taps_x.count;
  }
  pixel_loops().sum(window, channels, 1.0f / static_cast<float>(count), out);
}

void pool_pixels(void* data, int64_t begin, int64_t end) {
  const Job& job = *static_cast<const Job*>(data);
  const int64_t all = job.pooling->geometry.in_channels;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t channel = item % job.chunks * kChannels;
    const int64_t left = all - channel;
    pool_pixel(*job.pooling, item / job.chunks, channel, left < kChannels ? left : kChannels);
  }
}

}  // namespace

void pool(const Pooling& pooling, Workers* workers) {
  const ConvGeometry& g = pooling.geometry;
  Job job = {&pooling, (g.in_channels + kChannels - 1) / kChannels};
  const int64_t pixels = g.batch * g.out_height * g.out_width;
  share_out(pixels * job.chunks, pixels * g.in_channels * g.kernel_y * g.kernel_x, pool_pixels,
            &job, workers);
}

}  // namespace rushlight::cpu
