// Operators on uint8 (../../types/quantized.h): sums and products of two, tables, pools. All
// instruction sets give the same integers.
#pragma once

#include "rushlight/engine/types/quantized.h"
#include "rushlight/platform/workers.h"

namespace rushlight::engine {

// Sets the constants of sums and differences from the operands' scales; kind and zero points are
// already set. False if the greater of the operands' scales is not within 2^-10 and 2^8 of the
// result's.
bool set_sum(float a_scale, float b_scale, float scale, QuantizedBinary* binary);

void combine(const QuantizedBinary& binary, const ByteOperands& operands, Workers* workers);

// out = b[a]: b is a table of 256 bytes, its strides are 0.
void look_up(const ByteOperands& operands, Workers* workers);

void pool(const QuantizedPooling& pooling, Workers* workers);

}  // namespace rushlight::engine
