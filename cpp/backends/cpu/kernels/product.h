// Float32 matrix products whose right operand was packed ahead of time: linear layers, and the
// inner part of convolutions.
//
// Panels. A packed matrix of k rows and n columns lies in panels of kPanel columns, the last one
// filled up with zeros: element (i, j) is at ((j / kPanel) * k + i) * kPanel + j % kPanel. Panels
// start at multiples of 64 bytes (of 32 with bfloat16). Every instruction set reads the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/allocator.h"
#include "rushlight/platform/workers.h"

namespace rushlight::cpu {

constexpr int64_t kPanel = 16;

// What panels hold; sums are float32 in any case. Int8 and Int4 are integers with scales, in panels
// as products of bytes have them (dot_product.h).
enum class PanelType : uint8_t { Float32, BFloat16, Float16, Int8, Int4 };

constexpr bool has_scales(PanelType type) { return type >= PanelType::Int8; }

constexpr int64_t panels_of(int64_t columns) { return (columns + kPanel - 1) / kPanel; }

// Scales of weights of which groups of neighbouring terms share one. Of each panel [groups,
// kPanel].
struct GroupScales {
  int64_t groups = 0;  // 0: there are none
  const void* scales = nullptr;
  bool halves = false;  // bfloat16, else float32
};

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
