// Packing of convolution inputs as the panels of a matrix product, without a copy of the whole
// unrolled input: element (k, pixel) is the input value that tap k of the kernel meets at an output
// pixel, or zero where that lies in the padding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

constexpr size_t kMaxSpatial = 3;

// One group of one image, seen through the kernel. Spatial dimensions are outermost first, and
// there are always three: missing ones have size 1, stride 1 and no padding.
struct Window {
  const float* data = nullptr;  // the whole input tensor
  int64_t size = 0;             // its elements
  int64_t origin = 0;           // of this image and group in it
  int64_t channel_stride = 0;
  int64_t strides[kMaxSpatial] = {};  // in elements, of the input's spatial dimensions
  int32_t in[kMaxSpatial] = {};
  int32_t out[kMaxSpatial] = {};
  int32_t kernel[kMaxSpatial] = {};
  int32_t stride[kMaxSpatial] = {};
  int32_t padding[kMaxSpatial] = {};
  int32_t dilation[kMaxSpatial] = {};  // negative for a kernel that is mirrored
  int32_t channels = 0;
  // k runs over (tap, channel), which is fast where channels lie side by side (channels-last);
  // otherwise over (channel, tap).
  bool channels_innermost = false;
};

struct WindowLoops {
  // out[(k - k0) * pitch + i] for output pixels first + i, i < count <= pitch <= kMaxPanelWidth,
  // k0 <= k < k0 + n. Like GemmLoops::pack_rows it writes whole vectors at each k.
  void (*pack)(const Window& w, int64_t first, int count, int64_t k0, int64_t n, float* out,
               int64_t pitch);
};

RL_LOOPS(WindowLoops, window_loops)

}  // namespace rushlight::kernels
