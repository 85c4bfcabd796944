// Inner loops of a depthwise convolution.
#pragma once

#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

constexpr int64_t kRowSlack =
    int64_t{16} * 5;  // floats that may be read beyond the end of an input row

struct DepthwiseLoops {
  // One output row of n pixels from padded input: out[x] = bias + sum over taps (i, j) of weights[i
  // * taps_x + j] * in[i * line + x * stride + j * dilation]. Reads up to kRowSlack floats beyond
  // the last one that it needs.
  void (*row)(const float* in, int64_t line, const float* weights, int taps_y, int taps_x,
              int64_t stride, int64_t dilation, float bias, float* out, int64_t n);
  // One output pixel of n channels: out[c] = bias[c] + sum over taps of weights[t * n + c] *
  // in[t][c]. A tap in the padding is nullptr. `bias` may be nullptr.
  void (*pixel)(const float* const* in, const float* weights, int taps, const float* bias,
                float* out, int64_t n);
};

RL_LOOPS(DepthwiseLoops, depthwise_loops)

}  // namespace rushlight::kernels
