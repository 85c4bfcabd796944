// Inner loops between integers and numbers: what becomes of a tile's sums, and rows of float32 as
// uint8 and back.
#pragma once

#include <cstdint>

#include "rushlight/backends/cpu/kernels/quantized.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::cpu {

// Sums of integers (dot.h) and how they become results: sum + start, times a column's multiplier.
// What belongs to columns is there for whole panels.
struct SumTile {
  const int32_t* sums = nullptr;  // element (i, j) at i * sums_step + j
  int64_t sums_step = 0;          // whole panels
  int64_t rows = 0;
  int64_t columns = 0;  // that are stored
  const int32_t* start = nullptr;
  const float* multipliers = nullptr;
};

struct RequantizeTile : SumTile {
  Requantize requantize;
  uint8_t* out = nullptr;
  int64_t out_step = 0;
};

// Numbers + bias + residual, clamped.
struct DequantizeTile : SumTile {
  // If A has a scale and zero point for each row: these, two floats for each. The number is
  // (sum - zero point * start) * scale * multiplier.
  const float* row_scales = nullptr;
  const float* bias = nullptr;  // may be nullptr, as residual
  const float* residual = nullptr;
  int64_t residual_step = 0;
  bool clamp = false;
  float low = 0, high = 0;
  float* out = nullptr;
  int64_t out_step = 0;
};

struct QuantizeLoops {
  void (*requantize)(const RequantizeTile& tile);
  void (*dequantize)(const DequantizeTile& tile);
  // out[i] = round_half_even(x[i] * inverse_scale) + zero_point, from 0 to 255; 0 for NaN.
  void (*to_bytes)(const float* x, int64_t n, float inverse_scale, int32_t zero_point,
                   uint8_t* out);
  // (x[i] - zero_point) * scale
  void (*to_floats)(const uint8_t* x, int64_t n, float scale, int32_t zero_point, float* out);
  // The least and the greatest; false, and neither, if there are infinities or NaN among them.
  bool (*extremes)(const float* x, int64_t n, float* least, float* greatest);
  // uint8 as int8 of the same number, or back: the highest bits turned.
  void (*flip)(const uint8_t* x, int64_t n, uint8_t* out);
};

RL_LOOPS(QuantizeLoops, quantize_loops)

}  // namespace rushlight::cpu
