// What becomes of sums of integers, checked.
#pragma once

#include "rushlight/engine/kernels/rows/quantized.h"
#include "rushlight/engine/operators/operator.h"

namespace rushlight::engine {

constexpr bool is_byte(int32_t x) { return x >= 0 && x <= 255; }

Status check_requantize(const Setup& setup, const Requantize& requantize);

// What an elementwise operator of two computes, from what its operands and its result stand for.
Status read_binary(const Setup& setup, const QuantizedBinaryParameters& parameters,
                   QuantizedBinary* binary);

}  // namespace rushlight::engine
