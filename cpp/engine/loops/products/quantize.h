// Inner loops between integers and floats: requantization and dequantization of a tile's sums, and
// conversion of rows between float32 and uint8.
#pragma once

#include <cstdint>

#include "rushlight/engine/types/quantized.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

// How sums of integers (dot.h) of some columns become results: (sum + start) * multiplier. `start`
// and `multipliers` have one element for each column, filled up to whole panels.
struct SumColumns {
  int64_t columns = 0;      // that are stored
  int64_t sums_stride = 0;  // from one row's sums to the next ones
  const int32_t* start = nullptr;
  const float* multipliers = nullptr;
  int64_t out_stride = 0;
};

// round_half_even(number) + zero_point, from low to high.
struct RequantizeColumns : SumColumns {
  Requantize requantize;
  uint8_t* out = nullptr;
  // If not nullptr, this tensor is added before the bytes are stored. It may be `out`.
  const uint8_t* residual = nullptr;
  int64_t residual_stride = 0;
  QuantizedBinary sum;
};

// Dequantized sums + bias + residual, clamped.
struct DequantizeColumns : SumColumns {
  bool scaled = false;  // sums are floats, and the results but for what follows
  // If not nullptr, the scale and zero point of each row of A (two floats). The result is (sum -
  // zero point * start * parts) * scale * (multiplier / parts).
  const float* row_scales = nullptr;
  int32_t parts = 1;  // a power of two
  // If not nullptr, sums are floats, and the result is (sum - zero point * share * parts) * (scale
  // / parts).
  const float* shares = nullptr;
  const float* bias = nullptr;  // may be nullptr, as residual
  const float* residual = nullptr;
  int64_t residual_stride = 0;
  bool clamp = false;
  float low = 0, high = 0;
  float* out = nullptr;
};

struct QuantizeLoops {
  // Rows row..row+rows-1 of the result, whose sums are int32, or float where there are shares.
  void (*requantize)(const RequantizeColumns& c, const int32_t* sums, int64_t row, int64_t rows);
  void (*dequantize)(const DequantizeColumns& c, const void* sums, int64_t row, int64_t rows);
  // out[i] = round_half_even(x[i] * inverse_scale) + zero_point, from 0 to 255; 0 for NaN.
  void (*to_bytes)(const float* x, int64_t n, float inverse_scale, int32_t zero_point,
                   uint8_t* out);
  // (x[i] - zero_point) * scale
  void (*to_floats)(const uint8_t* x, int64_t n, float scale, int32_t zero_point, float* out);
  // Groups of `size` terms, a multiple of 16, as int8 from -127 to 127, with each group's scale and
  // the sum of its integers. The scale of a group with infinities or NaN is NaN.
  void (*to_groups)(const float* x, int64_t groups, int64_t size, int8_t* out, float* scales,
                    int32_t* sums);
  // The least and the greatest of the elements and zero; false if there are infinities or NaN.
  bool (*extremes)(const float* x, int64_t n, float* least, float* greatest);
  // uint8 as int8 of the same number, or back: the highest bits flipped.
  void (*flip)(const uint8_t* x, int64_t n, uint8_t* out);
};

RL_LOOPS(QuantizeLoops, quantize_loops)

}  // namespace rushlight::engine
