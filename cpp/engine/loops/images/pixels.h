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
  int64_t y_step = 0, x_step = 0;
};

struct PixelLoops {
  // out[x * out_step + c] = in[x * column_step + c * channel_step].
  void (*gather)(const float* in, int64_t column_step, int64_t channel_step, int64_t columns,
                 int64_t channels, float* out, int64_t out_step);
  // out[i * out_step + c] += in[i * in_step + c] for i < count.
  void (*add)(const float* in, int64_t in_step, int64_t count, int64_t channels, float* out,
              int64_t out_step);
  void (*clamp)(float* values, int64_t n, float low, float high);
  // NaN if one of a window is NaN.
  void (*max)(const PoolWindow<float>& window, int64_t channels, float* out);
  void (*sum)(const PoolWindow<float>& window, int64_t channels, float factor, float* out);
};

RL_LOOPS(PixelLoops, pixel_loops)

}  // namespace rushlight::engine
