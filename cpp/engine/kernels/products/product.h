// Float32 matrix products whose right operand was packed ahead of time: linear layers, and the
// inner part of convolutions. The portable kernels have a product of their own
// (kernels/portable/linalg/gemm.h) for operands that are known only at run time, with any strides.
// Here the left operand is read in place, weights may be integers or half types, and an epilogue
// runs on results in cache.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/engine/types/product.h"
#include "rushlight/platform/workers.h"

namespace rushlight::engine {

// The bytes of scratch that multiply() needs with this many threads; 0 for panels of float32.
size_t least_product_scratch(const Product& product, size_t threads);
// The bytes of scratch that it can use; with less, it is slower.
size_t product_scratch(const Product& product, size_t threads);

// The result does not depend on the number of threads. `workers` may be nullptr.
void multiply(const Product& product, void* scratch, size_t scratch_size, Workers* workers);

// Packs a matrix at run time, for operands that are not constant: element (i, j) of the `depth` by
// `columns` matrix at i * row_stride + j * column_stride.
void pack_panels(const float* matrix, int64_t row_stride, int64_t column_stride, int64_t depth,
                 int64_t columns, float* panels, Workers* workers);

}  // namespace rushlight::engine
