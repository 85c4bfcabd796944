// Rows of float32 as uint8, and back.
#pragma once

#include <cstdint>

#include "rushlight/platform/workers.h"

namespace rushlight::engine {

// Rows of float32 as uint8, asymmetric, each with its own scale and zero point (two floats): the
// scale maps the least and the greatest of the numbers and 0 to 0 and 255; the zero point is
// rounded at the end with the smaller error (XNNPACK's dynamic quantization). A row with NaN or
// infinities gets scale NaN. A scale so small that 1 / scale overflows becomes 1.
struct QuantizeRows {
  int64_t rows = 0, width = 0;
  const float* in = nullptr;  // element (i, j) at i * in_stride + j
  int64_t in_stride = 0;
  uint8_t* out = nullptr;
  int64_t out_stride = 0;
  float* scales = nullptr;
};
void quantize_rows(const QuantizeRows& job, Workers* workers);

// Rows of float32 as int8 from -127 to 127 in groups of 16 or 32 neighbours, each with its own
// scale and the sum of its integers: [rows, groups]. A group with NaN or infinities gets scale NaN.
struct QuantizeGroups {
  int64_t rows = 0, width = 0;
  int64_t group_size = 0;
  const float* in = nullptr;  // element (i, j) at i * in_stride + j
  int64_t in_stride = 0;
  int8_t* out = nullptr;
  int64_t out_stride = 0;
  float* scales = nullptr;
  int32_t* sums = nullptr;
};
void quantize_groups(const QuantizeGroups& job, Workers* workers);

enum class ByteConversion : uint8_t { ToBytes, ToFloats, Flip };

// Rows of float32 as uint8 with one scale and zero point, or back; or of uint8 as int8 for the same
// numbers, or back.
struct Convert {
  ByteConversion kind = ByteConversion::Flip;
  int64_t rows = 0, width = 0;
  const void* in = nullptr;  // strides in elements
  int64_t in_stride = 0;
  void* out = nullptr;
  int64_t out_stride = 0;
  float scale = 1;
  int32_t zero_point = 0;
};
void convert(const Convert& job, Workers* workers);

}  // namespace rushlight::engine
