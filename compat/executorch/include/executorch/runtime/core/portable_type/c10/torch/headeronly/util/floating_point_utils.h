// Bits of float32 numbers.
#pragma once

#include <torch/headeronly/util/bit_cast.h>

#include <cstdint>

namespace c10::detail {

inline float fp32_from_bits(uint32_t bits) { return bit_cast<float>(bits); }
inline uint32_t fp32_to_bits(float value) { return bit_cast<uint32_t>(value); }

}  // namespace c10::detail
