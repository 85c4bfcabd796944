// Float32 matrix products whose right operand was packed ahead of time: linear layers, and the
// inner part of convolutions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/backends/cpu/kernels/panels.h"
#include "rushlight/core/allocator.h"
#include "rushlight/platform/workers.h"

namespace rushlight::cpu {

// What is done to results on their way out of registers, and to blocks of results that are stored
// and still in cache.
struct Finish {
  const float* bias = nullptr;  // one per column, filled up with zeros to whole panels
  // Added; element (i, j) at i * residual_step + j. Not of depthwise and transposed convolutions.
  const float* residual = nullptr;
  int64_t residual_step = 0;
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
  int64_t depth = 0;  // the sum's length
  int64_t columns = 0;
  const float* a = nullptr;  // element (i, k) at i * a_step + k
  int64_t a_step = 0;
  const void* panels = nullptr;
  PanelType type = PanelType::Float32;  // of panels
  GroupScales scales;                   // of integers; groups of terms are multiples of kOct
  float* c = nullptr;                   // element (i, j) at i * c_step + j
  int64_t c_step = 0;
  Finish finish;
};

// Bytes of scratch that multiply() needs, on so many threads; 0 of panels of float32.
size_t least_product_scratch(const Product& product, size_t threads);
// Those that it uses if it gets them: with the least it is slower.
size_t product_scratch(const Product& product, size_t threads);

// The result does not depend on the number of threads. `workers` may be nullptr.
void multiply(const Product& product, void* scratch, size_t scratch_size, Workers* workers);

// Packs a matrix at run time, for operands that are no constants: element (i, j) of the `depth` by
// `columns` matrix at i * row_step + j * column_step.
void pack_panels(const float* matrix, int64_t row_step, int64_t column_step, int64_t depth,
                 int64_t columns, float* panels, Workers* workers);

}  // namespace rushlight::cpu
