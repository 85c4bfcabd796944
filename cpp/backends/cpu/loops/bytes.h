// Inner loops of elementwise operators on uint8.
#pragma once

#include <cstdint>

#include "rushlight/backends/cpu/kernels/quantized.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::cpu {

// Elements of a row, `step` bytes apart; those of an operand may all be one.
struct ByteRow {
  const uint8_t *a = nullptr, *b = nullptr;
  uint8_t* out = nullptr;
  int64_t a_step = 1, b_step = 1, out_step = 1;
  int64_t count = 0;
};

struct ByteLoops {
  void (*combine)(const QuantizedBinary& binary, const ByteRow& row);
  void (*look_up)(const ByteRow& row);  // in the table b
};

RL_LOOPS(ByteLoops, byte_loops)

}  // namespace rushlight::cpu
