// Packs convolution inputs as the panels of a matrix product, without a copy of the whole unrolled
// input. Element (k, pixel) is the input that tap k of the kernel reads for an output pixel, or
// zero if that is in the padding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

constexpr size_t kMaxSpatial = 3;

// One group of one image, as the kernel reads it. There are always three spatial dimensions,
// outermost first; a missing one has size 1, stride 1 and no padding.
struct Window {
  const float* data = nullptr;  // the whole input tensor
  int64_t size = 0;             // number of its elements
  int64_t origin = 0;           // offset of this image and group in it
  int64_t channel_stride = 0;
  int64_t strides[kMaxSpatial] = {};  // in elements, of the input's spatial dimensions
  int32_t in[kMaxSpatial] = {};
  int32_t out[kMaxSpatial] = {};
  int32_t kernel[kMaxSpatial] = {};
  int32_t stride[kMaxSpatial] = {};
  int32_t padding[kMaxSpatial] = {};
  int32_t dilation[kMaxSpatial] = {};  // negative for a mirrored kernel
  int32_t channels = 0;
  // If true, k numbers (tap, channel), which is fast if channels are adjacent in memory
  // (channels-last). Otherwise k numbers (channel, tap).
  bool channels_innermost = false;
};

struct WindowLoops {
  // out[(k - k0) * pitch + i] for output pixels first + i, i < count <= pitch <= kMaxPanelWidth, k0
  // <= k < k0 + n. Like GemmLoops::pack_rows it writes whole vectors for each k.
  void (*pack)(const Window& w, int64_t first, int count, int64_t k0, int64_t n, float* out,
               int64_t pitch);
};

RL_LOOPS(WindowLoops, window_loops)

}  // namespace rushlight::kernels
