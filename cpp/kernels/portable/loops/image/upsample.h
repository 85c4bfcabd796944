// Inner loops of bilinear interpolation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

// The inputs of a line of pixels whose channels are adjacent in memory: two input rows, and the
// offsets of the left and right neighbour of each pixel in a row.
struct PixelLine {
  const void* rows[2];
  double row_weight[2];
  const int32_t* left;
  const int32_t* right;
  const void* left_weight;
  const void* right_weight;
  size_t channels;
};

// In tables, [0] is float and [1] double (kF32, kF64): the type of all elements and weights.
struct UpsampleLoops {
  // out[i] = row[left[i]] * left_weight[i] + row[right[i]] * right_weight[i]
  void (*gather_blend[2])(const void* row, const int32_t* left, const int32_t* right,
                          const void* left_weight, const void* right_weight, size_t n, void* out);
  // out[i] = a[i] * a_weight[i] + b[i] * b_weight[i]
  void (*blend_each[2])(const void* a, const void* b, const void* a_weight, const void* b_weight,
                        size_t n, void* out);
  // out[i] = a[i] * a_weight + b[i] * b_weight
  void (*blend[2])(const void* a, const void* b, double a_weight, double b_weight, size_t n,
                   void* out);
  // Computes n pixels. Each is the weighted sum of four neighbours, channel by channel.
  void (*blend_pixels[2])(const PixelLine& line, size_t n, void* out);
};

RL_LOOPS(UpsampleLoops, upsample_loops)

}  // namespace rushlight::kernels
