// For tests of convolutions and pools: random geometries.
#pragma once

#include <cstdio>

#include "cpu_kernels.h"
#include "rushlight/engine/kernels/images/convolution.h"

namespace rushlight {
namespace test {

inline int64_t in_size(const engine::ConvGeometry& g) {
  return g.batch * g.in_height * g.in_width * g.in_channels;
}
inline int64_t out_size(const engine::ConvGeometry& g) {
  return g.batch * g.out_height * g.out_width * g.out_channels;
}

// The size of a result with equal padding on both sides; 0 if there is none.
inline int64_t out_of(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad) {
  const int64_t room = in + 2 * pad - (kernel - 1) * dilation - 1;
  return room < 0 ? 0 : room / stride + 1;
}

inline engine::ConvGeometry drawn_geometry(Random& random, int64_t widest) {
  engine::ConvGeometry g;
  g.batch = random.whole(0, 12) == 0 ? 0 : random.whole(1, 2);
  g.in_height = random.whole(1, 12);
  g.in_width = random.whole(1, widest);
  g.kernel_y = random.whole(1, 4);
  g.kernel_x = random.whole(1, 5);
  g.stride_y = random.whole(1, 3);
  g.stride_x = random.whole(1, 3);
  g.dilation_y = random.whole(1, 2);
  g.dilation_x = random.whole(0, 3) == 0 ? 2 : 1;
  g.pad_top = random.whole(0, 2);
  g.pad_left = random.whole(0, 3);
  g.out_height = out_of(g.in_height, g.kernel_y, g.stride_y, g.dilation_y, g.pad_top);
  g.out_width = out_of(g.in_width, g.kernel_x, g.stride_x, g.dilation_x, g.pad_left);
  return g;
}

// Geometries of dense and grouped convolutions. Some have a single tap, and some of these have no
// padding.
inline engine::ConvGeometry drawn_dense_geometry(Random& random, int i) {
  engine::ConvGeometry g = drawn_geometry(random, 35);
  if (i % 4 == 0) g.kernel_y = g.kernel_x = 1;
  if (i % 8 == 0) g.pad_top = g.pad_left = 0;
  g.out_height = out_of(g.in_height, g.kernel_y, g.stride_y, g.dilation_y, g.pad_top);
  g.out_width = out_of(g.in_width, g.kernel_x, g.stride_x, g.dilation_x, g.pad_left);
  g.groups = random.chance(3) ? random.whole(2, 6) : 1;
  g.in_channels = g.groups * random.whole(1, 20);
  g.out_channels = g.groups * random.whole(1, 40);
  return g;
}

inline void print_geometry(const char* what, const engine::ConvGeometry& g) {
  std::fprintf(
      stderr,
      "%s: %s, in %dx%dx%dx%d, out %dx%dx%d, kernel %dx%d, stride %d %d, "
      "dilation %d %d, pad %d %d, groups %d\n",
      kernels::isa_name(kernels::current_isa()), what, static_cast<int>(g.batch),
      static_cast<int>(g.in_height), static_cast<int>(g.in_width), static_cast<int>(g.in_channels),
      static_cast<int>(g.out_height), static_cast<int>(g.out_width),
      static_cast<int>(g.out_channels), static_cast<int>(g.kernel_y), static_cast<int>(g.kernel_x),
      static_cast<int>(g.stride_y), static_cast<int>(g.stride_x), static_cast<int>(g.dilation_y),
      static_cast<int>(g.dilation_x), static_cast<int>(g.pad_top), static_cast<int>(g.pad_left),
      static_cast<int>(g.groups));
}

}  // namespace test
}  // namespace rushlight
