// Inner loops of elementwise operators and pools on uint8.
#pragma once

#include <cstdint>

#include "rushlight/engine/loops/images/pixels.h"
#include "rushlight/engine/types/quantized.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

// A row of elements with strides in bytes; 0 repeats one element of an operand.
struct ByteRow {
  const uint8_t *a = nullptr, *b = nullptr;
  uint8_t* out = nullptr;
  int64_t a_stride = 1, b_stride = 1, out_stride = 1;
  int64_t count = 0;
};

// (start + sum) * multiplier, requantised.
struct ByteAverage {
  int32_t start = 0;
  float multiplier = 0;
  float offset = 0;  // added to sum * multiplier before it is rounded
  Requantize requantize;
};

struct ByteLoops {
  // out[x * out_stride + j] = planes[j][x * stride] for four planes.
  void (*interleave)(const uint8_t* const* planes, int64_t stride, int64_t columns, uint8_t* out,
                     int64_t out_stride);
  void (*combine)(const QuantizedBinary& binary, const ByteRow& row);
  void (*look_up)(const ByteRow& row);  // in the table `b`
  // Without taps, 0.
  void (*max)(const PoolWindow<uint8_t>& window, int64_t channels, uint8_t* out);
  // Sums must fit in 32 bits.
  void (*average)(const PoolWindow<uint8_t>& window, const ByteAverage& average, int64_t channels,
                  uint8_t* out);
};

RL_LOOPS(ByteLoops, byte_loops)

}  // namespace rushlight::engine
