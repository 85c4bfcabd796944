// Matrix products of uint8 with weights of 8 or 4 bits that were packed ahead of time, and how
// their sums become results. The sums are integers, and exact on every instruction set.
#pragma once

#include "rushlight/engine/types/product.h"
#include "rushlight/engine/types/quantized.h"

namespace rushlight::engine {

// How many terms a 32-bit sum holds if each is at most 255 * 128.
constexpr int64_t kMaxQuantizedTerms = static_cast<int64_t>(fb::cpu_engine::Limit::QUANTIZED_TERMS);
static_assert(kMaxQuantizedTerms == INT32_MAX / (255 * 128), "as the schema says");

// How sums become results: uint8 or float32.
struct QuantizedResults {
  const int32_t* start = nullptr;  // one for each column, as multipliers
  const float* multipliers = nullptr;
  // If not nullptr, the result is (sum + start) * multiplier, requantized.
  uint8_t* bytes = nullptr;
  Requantize requantize;
  // If not nullptr, this tensor is added to (or subtracted from) the uint8 result: element (i, j)
  // at i * residual_stride + j. It may be `bytes` itself. Depthwise convolutions have none.
  const uint8_t* residual = nullptr;
  int64_t residual_stride = 0;
  QuantizedBinary sum;
  // Or else float32, with the epilogue applied to (sum + start) * multiplier. If each row of A has
  // a scale and a zero point (two floats), to (sum - zero point * start) * scale * multiplier. With
  // groups, whose sums are multiplied already, to (sum - zero point * share) * scale.
  float* floats = nullptr;
  const float* row_scales = nullptr;
  // With groups of rows: sums are floats, multiplied by all scales.
  bool scaled = false;
  int32_t parts = 1;              // sums are this many times too large: 16 with weights of 4 bits
  const float* shares = nullptr;  // one for each column: the sum of scale * weight
  Epilogue epilogue;
  int64_t stride = 0;  // element (i, j) at i * stride + j
};

// Rows of int8 from -127 to 127 whose terms have scales in groups. Arrays are [rows, groups].
struct RowGroups {
  int64_t groups = 0;  // 0: rows are uint8, with one scale and zero point each
  const float* scales = nullptr;
  const int32_t* sums = nullptr;  // of each group's integers
};

// Terms of the largest group of a row. Groups of rows are multiples of kOct * 2.
constexpr int64_t kMaxRowGroup = 32;

struct QuantizedProduct {
  int64_t rows = 0;
  int64_t depth = 0;
  int64_t columns = 0;
  const uint8_t* a = nullptr;  // element (i, k) at i * a_stride + k; the bytes of int8 in groups
  int64_t a_stride = 0;
  const void* panels = nullptr;
  int32_t bits = 8;  // of a weight; with 4 bits there are row_scales or groups of rows
  GroupScales groups;
  RowGroups row_groups;  // whose number is a multiple of the weights' groups
  QuantizedResults results;
};

}  // namespace rushlight::engine
