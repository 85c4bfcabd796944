// Bits of float32 numbers.
// Where code is compiled with PyTorch, the header is PyTorch's own.
#if defined(__has_include_next) && __has_include(<ATen/core/Tensor.h>)
#if __has_include_next(<torch/headeronly/util/floating_point_utils.h>)
#include_next <torch/headeronly/util/floating_point_utils.h>
#else
#include <torch/headeronly/util/floating_point_utils.h>
#endif
#else
#pragma once

#include <torch/headeronly/util/bit_cast.h>

#include <cstdint>

namespace c10::detail {

inline float fp32_from_bits(uint32_t bits) { return bit_cast<float>(bits); }
inline uint32_t fp32_to_bits(float value) { return bit_cast<uint32_t>(value); }

}  // namespace c10::detail

#endif
