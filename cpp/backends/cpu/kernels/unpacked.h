// Products with weights of 8 or 4 bits that are computed in float32: some terms of two panels at a
// time are unpacked, multiplied by their scales, and used by all rows before the next ones.
#pragma once

#include "rushlight/backends/cpu/kernels/product.h"

namespace rushlight::cpu {

// Bytes of scratch that are needed.
size_t unpacked_scratch(const Product& product, size_t threads);
// As multiply() does; of more scratch rows are packed.
void multiply_unpacked(const Product& product, void* scratch, size_t scratch_size,
                       Workers* workers);

}  // namespace rushlight::cpu
