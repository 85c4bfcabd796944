// How sums of a DequantizeColumns become floats. Included by loops files only.
#pragma once

#include "rushlight/engine/loops/products/quantize.h"
#include "rushlight/engine/loops/vectors/integers.h"

namespace rushlight::engine::RL_ISA {

using namespace ::rushlight::kernels::RL_ISA;

// The kinds of sums that a DequantizeColumns can have.
enum class Kind { Start, Rows, Numbers, Scaled };

// The constants of a vector of columns, which dequantize its sums.
template <Kind kKind>
struct Numbers {
  IntVec start = {};
  Vec factor, bias = {};
  float unit;

  Numbers(const DequantizeColumns& c, int64_t j) : unit(1.0f / static_cast<float>(c.parts)) {
    if (c.bias != nullptr) bias = load(c.bias + j);
    if constexpr (kKind == Kind::Numbers) {
      factor = load(c.shares + j) * splat(static_cast<float>(c.parts));
    } else if constexpr (kKind != Kind::Scaled) {
      start = load_int(c.start + j);
      factor = load(c.multipliers + j);
      if constexpr (kKind == Kind::Rows) {
        start = wrap_multiply(start, splat_int(-c.parts));
        factor *= splat(unit);
      }
    }
  }
  // Of sums that are floats. `scale` is the row's scale and zero point.
  Vec dequantized(Vec sum, const float* scale) const {
    if constexpr (kKind == Kind::Scaled) return sum + bias;
    return (sum - splat(scale[1]) * factor) * splat(scale[0] * unit) + bias;
  }
  // `integers` are the scale and the zero point as integers.
  Vec dequantized(const void* sums, const float* scale, const int32_t* integers) const {
    if constexpr (kKind == Kind::Scaled || kKind == Kind::Numbers) {
      return dequantized(load(static_cast<const float*>(sums)), scale);
    } else {
      const IntVec sum = load_int(static_cast<const int32_t*>(sums));
      if constexpr (kKind == Kind::Start) return to_floats(wrap_add(sum, start)) * factor + bias;
      const IntVec share = wrap_multiply(splat_int(integers[1]), start);
      return to_floats(wrap_add(sum, share)) * splat(scale[0]) * factor + bias;
    }
  }
};

}  // namespace rushlight::engine::RL_ISA
