// Packs weights of 8 and 4 bits in the layout of the engine's kernels: see
// engine/types/{panels,dot_product}.h.
#pragma once

#include "rushlight/backends/xnnpack/weights/pack.h"

namespace rushlight::xnnpack {

// The number of bytes when packed; -1 if there are too many.
int64_t dense_bytes(const Filter& filter);
int64_t depthwise_bytes(const Filter& filter);
int64_t nibble_bytes(const Filter& filter);

// Packs int8 weights in Filter's layout; if `is_transposed`, a fully connected layer's in [inputs,
// outputs]. `sums` gets the sum of each output's weights.
void pack_dense_bytes(const Filter& filter, bool is_transposed, int8_t* to, int32_t* sums);
void pack_depthwise_bytes(const Filter& filter, int8_t* to, int32_t* sums);
// Packs a fully connected layer's weights of 4 bits: unsigned, two in a byte, the lower half first,
// each 8 greater than its value.
void pack_nibbles(const Filter& filter, uint8_t* to, int32_t* sums);
// The weight of one output and input in that layout.
int32_t nibble_at(const Filter& filter, int64_t output, int64_t input);

}  // namespace rushlight::xnnpack
