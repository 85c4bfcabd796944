// Inner loops on rows of pixels, whose channels lie next to each other.
#pragma once

#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

// A window of pixels over which a pool reduces.
template <typename T>
struct PoolWindow {
  const T* in = nullptr;
  int64_t taps_y = 0, taps_x = 0;
  int64_t y_stride = 0, x_stride = 0;
};

struct PixelLoops {
  // out[x * out_stride + c] = in[x * column_stride + c * channel_stride].
  void (*gather)(const float* in, int64_t column_stride, int64_t channel_stride, int64_t columns,
                 int64_t channels, float* out, int64_t out_stride);
  // out[i * out_stride + c] += in[i * in_stride + c] for i < count.
  void (*add)(const float* in, int64_t in_stride, int64_t count, int64_t channels, float* out,
              int64_t out_stride);
  void (*clamp)(float* values, int64_t n, float low, float high);
  // A window with a NaN gives NaN.
  void (*max)(const PoolWindow<float>& window, int64_t channels, float* out);
  void (*sum)(const PoolWindow<float>& window, int64_t channels, float factor, float* out);
};

RL_LOOPS(PixelLoops, pixel_loops)

}  // namespace rushlight::engine
