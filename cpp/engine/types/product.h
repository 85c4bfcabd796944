// A matrix product whose right operand was packed ahead of time, and what is done to its results.
#pragma once

#include <cstdint>

#include "rushlight/engine/types/panels.h"

namespace rushlight::engine {

// What is done to results before they are stored, and to blocks of results while they are still in
// cache.
struct Epilogue {
  const float* bias = nullptr;  // one per column, filled up with zeros to whole panels
  // Added; element (i, j) at i * residual_stride + j. Depthwise and transposed convolutions have
  // none.
  const float* residual = nullptr;
  int64_t residual_stride = 0;
  float low = -__builtin_inff();
  float high = __builtin_inff();  // results are clamped: low <= x <= high (NaN stays NaN)
  bool clamps() const { return low > -__builtin_inff() || high < __builtin_inff(); }
  // Called once for each block of the result, which it may change in place; from several threads.
  void (*block)(const void* data, int64_t row, int64_t rows, int64_t column,
                int64_t columns) = nullptr;
  const void* data = nullptr;
};

struct Product {
  int64_t rows = 0;
  int64_t depth = 0;  // terms of each sum
  int64_t columns = 0;
  const float* a = nullptr;  // element (i, k) at i * a_stride + k
  int64_t a_stride = 0;
  const void* panels = nullptr;
  PanelType type = PanelType::Float32;  // of panels
  GroupScales scales;                   // of integer panels; groups of terms are multiples of kOct
  float* c = nullptr;                   // element (i, j) at i * c_stride + j
  int64_t c_stride = 0;
  Epilogue epilogue;
};

}  // namespace rushlight::engine
