// What becomes of sums of integers, checked.
#pragma once

#include "rushlight/backends/cpu/kernels/quantized.h"
#include "rushlight/backends/cpu/operator.h"

namespace rushlight::cpu {

constexpr bool is_byte(int32_t x) { return x >= 0 && x <= 255; }

inline Status check_requantize(const Setup& setup, const Requantize& given) {
  if (is_byte(given.zero_point) && is_byte(given.low) && is_byte(given.high) &&
      given.low <= given.high) {
    return {};
  }
  return setup.refuse("its zero point or its bounds are not within 0..255");
}

}  // namespace rushlight::cpu
