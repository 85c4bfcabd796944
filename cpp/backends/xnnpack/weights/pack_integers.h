// Weights of 8 and 4 bits in the order in which the engine's kernels read them: see
// engine/types/{panels,dot_product}.h.
#pragma once

#include "rushlight/backends/xnnpack/weights/pack.h"

namespace rushlight::xnnpack {

// Bytes that the packed form has; -1 if there are too many.
int64_t dense_bytes(const Filter& filter);
int64_t depthwise_bytes(const Filter& filter);
int64_t nibble_bytes(const Filter& filter);

// Of int8, as Filter has them; `is_transposed`: a fully connected layer's that lies as [inputs,
// outputs]. `sums`: those of the weights of each output.
void pack_dense_bytes(const Filter& filter, bool is_transposed, int8_t* to, int32_t* sums);
void pack_depthwise_bytes(const Filter& filter, int8_t* to, int32_t* sums);
// Of a fully connected layer's unsigned halves of bytes, the lower one first, that stand for
// themselves minus 8.
void pack_nibbles(const Filter& filter, uint8_t* to, int32_t* sums);
// The weight of an output, as it lies there.
int32_t nibble_at(const Filter& filter, int64_t output, int64_t input);

}  // namespace rushlight::xnnpack
