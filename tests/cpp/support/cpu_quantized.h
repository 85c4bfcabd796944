// For tests of operators on uint8: random bytes, and the requantization of sums, in plain integers.
#pragma once

#include <cmath>

#include "cpu_kernels.h"
#include "rushlight/engine/kernels/rows/quantized.h"

namespace rushlight {
namespace test {

inline std::vector<uint8_t> bytes_of(Random& random, int64_t n) {
  std::vector<uint8_t> bytes(static_cast<size_t>(n));
  // The bounds are more frequent than other values.
  for (uint8_t& byte : bytes) {
    byte = static_cast<uint8_t>(random.chance(8) ? 255 * random.whole(0, 1) : random.whole(0, 255));
  }
  return bytes;
}

inline int32_t clamped(int64_t value, const engine::Requantize& requantize) {
  value += requantize.zero_point;
  if (value < requantize.low) return requantize.low;
  return value > requantize.high ? requantize.high : static_cast<int32_t>(value);
}

// round_half_even(sum * multiplier), in float32 except for the rounding.
inline int32_t requantized(int64_t sum, float multiplier, const engine::Requantize& requantize) {
  const double product = static_cast<double>(static_cast<float>(sum) * multiplier);
  return clamped(std::llrint(std::fmin(std::fmax(product, -1e6), 1e6)), requantize);
}

inline engine::Requantize draw_requantize(Random& random) {
  engine::Requantize requantize;
  requantize.zero_point = static_cast<int32_t>(random.whole(0, 255));
  if (!random.chance(3)) return requantize;
  requantize.low = static_cast<int32_t>(random.whole(0, 255));
  requantize.high = static_cast<int32_t>(random.whole(requantize.low, 255));
  return requantize;
}

}  // namespace test
}  // namespace rushlight
