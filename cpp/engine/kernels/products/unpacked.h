// Products with weights of 8 or 4 bits, or in a half type, that are computed in float32: some terms
// of two panels at a time are unpacked and used by all rows.
#pragma once

#include "rushlight/engine/loops/products/gemm.h"
#include "rushlight/platform/workers.h"

namespace rushlight::engine {

// Products of few rows read half types without unpacking.
constexpr bool is_unpacked(const Product& product) {
  return has_scales(product.type) ||
         (product.type != PanelType::Float32 && product.rows > kNarrowRows);
}
// Bytes of scratch that are needed.
size_t unpacked_scratch(const Product& product, size_t threads);
// Like multiply(). With more scratch than it needs, rows are packed.
void multiply_unpacked(const Product& product, void* scratch, size_t scratch_size,
                       Workers* workers);

}  // namespace rushlight::engine
