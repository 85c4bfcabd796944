// Inner loops of bilinear interpolation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

// What a line of pixels, whose channels lie side by side, is blended from: two rows of input, and
// where the left and right neighbour of each pixel starts in a row.
struct PixelLine {
  const void* rows[2];
  double row_weight[2];
  const int32_t* left;
  const int32_t* right;
  const void* left_weight;
  const void* right_weight;
  size_t channels;
};

// Tables: [0] float, [1] double (kF32, kF64), the type of all elements and weights.
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
  // n pixels, each the sum over four neighbours of their channels times their weight
  void (*blend_pixels[2])(const PixelLine& line, size_t n, void* out);
};

RL_LOOPS(UpsampleLoops, upsample_loops)

}  // namespace rushlight::kernels
