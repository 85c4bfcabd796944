// Operators on uint8 values, which stand for scale * (integer - zero point): sums and products of
// two operands, pools, and the requantization of integer sums.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/engine/types/convolution.h"
#include "rushlight/engine/types/view.h"

namespace rushlight::engine {

// From an integer sum to uint8: round_half_even(sum * multiplier) + zero_point, clamped. Zero point
// and bounds are within 0..255.
struct Requantize {
  int32_t zero_point = 0;
  int32_t low = 0;
  int32_t high = 255;
};

enum class QuantizedBinaryKind : uint8_t { Add, Subtract, Multiply };

// The operands of an elementwise operator, each with its own strides in bytes; those of a and b may
// be 0.
struct ByteOperands {
  size_t rank = 0;
  int64_t sizes[kMaxViewRank] = {};
  int64_t a_strides[kMaxViewRank] = {}, b_strides[kMaxViewRank] = {},
          out_strides[kMaxViewRank] = {};
  const uint8_t* a = nullptr;
  const uint8_t* b = nullptr;
  uint8_t* out = nullptr;
};

// Sums and differences: (bias + a * a_multiplier + b * b_multiplier >> shift) + zero_point, which
// is XNNPACK's vadd: multipliers have 21 bits, the bias holds zero points and half of what is
// shifted out. Products: ((a - a_zero_point) * (b - b_zero_point)) * multiplier, requantised.
struct QuantizedBinary {
  QuantizedBinaryKind kind = QuantizedBinaryKind::Add;
  int32_t bias = 0, a_multiplier = 0, b_multiplier = 0, shift = 0;
  int32_t a_zero_point = 0, b_zero_point = 0;
  float multiplier = 0;
  Requantize requantize;
};

// The maximum of each window, unchanged, or its average, requantized. Taps outside count as zero.
// Sums fit in 32 bits.
struct QuantizedPooling : PoolShape {
  int32_t in_zero_point = 0;
  float multiplier = 1;  // the input's scale divided by the result's
  // An average halfway between two integers becomes the one that is even: before the zero point is
  // added, as PyTorch rounds, or after that, as XNNPACK does.
  bool adds_zero_point_first = false;
  Requantize requantize;
  const uint8_t* in = nullptr;  // dense, channels last
  uint8_t* out = nullptr;
};

}  // namespace rushlight::engine
