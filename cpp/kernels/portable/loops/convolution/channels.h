// Inner loops of convolutions whose channels are adjacent in memory. They read their input without
// packing.
#pragma once

#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

constexpr int64_t kMaxChannelRows = 8;
constexpr int64_t kMaxChannelVectors = 2;
// Whole vectors are read, so this many floats must be readable after the end of each operand.
constexpr int64_t kChannelSlack = kMaxChannelVectors * 16;

// sums[i][j] += sum over terms t and k of a[t][i][k] b[t][k][j], for j < columns.
struct ChannelTile {
  int64_t terms;
  const float* const* a;  // element (i, k) of each at a_offset + i * a_row + k * a_stride
  const float* const* b;  // element (k, j) of each at b_offset + k * b_stride + j
  int64_t a_offset;
  int64_t a_row;
  int64_t a_stride;
  int64_t b_offset;
  int64_t b_stride;
  int64_t k;
  float* sums;  // element (i, j) at i * sums_stride + j
  int64_t sums_stride;
  int64_t columns;  // at most the number of lanes of the tile's vectors
};

constexpr int64_t kMaxLineTaps = 9;

struct ChannelLoops {
  int64_t lanes;
  int64_t rows;  // maximum rows of a tile
  void (*tile[kMaxChannelVectors][kMaxChannelRows])(const ChannelTile& tile);
  // The gradient of depthwise weights: sums[t * channels + c] += sum over pixels x < n of
  // wide[t][x * wide_stride + c] * narrow[x * channels + c], for all channels and at most
  // kMaxLineTaps taps.
  void (*line)(const float* const* wide, int64_t taps, int64_t wide_stride, const float* narrow,
               int64_t n, int64_t channels, float* sums);
};

RL_LOOPS(ChannelLoops, channel_loops)

}  // namespace rushlight::kernels
