// Float32 operators on rows: norms, softmax, reductions, gathers; and copies with any strides
// (permutations, slices, concatenation, broadcasts).
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/dtype.h"
#include "rushlight/engine/types/panels.h"

namespace rushlight::engine {

constexpr size_t kCopyRank = 6;

// out = (x - mean) / sqrt(variance + epsilon) * scale + shift over each of `rows` dense rows of
// `width` elements; scale and shift (of `width` elements) may be nullptr. With rms, no mean is
// subtracted.
struct Norm {
  int64_t rows = 0, width = 0;
  const float *in = nullptr, *scale = nullptr, *shift = nullptr;
  float* out = nullptr;
  float epsilon = 0;
  bool rms = false;
};

// Group norm of [batch, channels, space] (space dense) or, channels_last, [batch, space, channels].
struct GroupNorm {
  int64_t batch = 0, channels = 0, space = 0, groups = 1;
  bool channels_last = false;
  const float *in = nullptr, *scale = nullptr, *shift = nullptr;
  float* out = nullptr;
  float epsilon = 0;
};

// Softmax (or log softmax) over the middle of [outer, width, inner].
struct Softmax {
  int64_t outer = 0, width = 0, inner = 1;
  const float* in = nullptr;
  float* out = nullptr;
  bool log = false;
};

// Sum, mean, max or min over the middle of [outer, width, inner].
enum class Reduction : uint8_t { Sum, Mean, Max, Min };
struct Reduce {
  int64_t outer = 0, width = 0, inner = 1;
  Reduction kind = Reduction::Sum;
  const float* in = nullptr;
  float* out = nullptr;
};

// The conversion that a copy or a gather makes. To a narrower float it rounds to nearest, ties to
// even.
enum class Conversion : uint8_t {
  None,
  HalfToFloat,
  FloatToHalf,
  BFloatToFloat,
  FloatToBFloat,
};

// out[i] = table[indices[i]], rows of `width` elements. Returns false and writes nothing if an
// index is not within 0..rows-1 (index_bad is then its position). With `panels`, the table is a
// product's packed matrix (panels.h): its columns are the rows, and the result is float32. With
// `bits`, the panels hold integers of 8 or 4 bits with scales.
struct Gather {
  bool panels = false;
  int32_t bits = 0;
  GroupScales scales;
  Conversion conversion = Conversion::None;
  int64_t rows = 0, width = 0, count = 0;
  int64_t element_size = 4;  // of the table
  const void* table = nullptr;
  const int64_t* indices = nullptr;
  void* out = nullptr;
};

// out[i0, i1, …] = in[i0, i1, …], each with its own strides in elements; elements of 1, 2, 4 or 8
// bytes (of the input, if they are converted). A stride of the input may be 0.
struct Copy {
  size_t rank = 0;
  int64_t sizes[kCopyRank] = {};
  int64_t in_strides[kCopyRank] = {};
  int64_t out_strides[kCopyRank] = {};
  size_t element_size = 4;
  Conversion conversion = Conversion::None;
  const void* in = nullptr;
  void* out = nullptr;
};

}  // namespace rushlight::engine
