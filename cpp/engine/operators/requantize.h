// The checked parameters of requantization.
#pragma once

#include "rushlight/engine/kernels/rows/quantized.h"
#include "rushlight/engine/operators/operator.h"

namespace rushlight::engine {

constexpr bool is_byte(int32_t x) { return x >= 0 && x <= 255; }

Status check_requantize(const Setup& setup, const Requantize& requantize);

// Computes an elementwise operator's integer constants from the scales and zero points of its
// operands and result.
Status read_binary(const Setup& setup, const QuantizedBinaryParameters& parameters,
                   QuantizedBinary* binary);

}  // namespace rushlight::engine
