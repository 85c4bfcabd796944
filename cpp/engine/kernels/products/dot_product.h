// Matrix products of uint8 with weights of 8 or 4 bits that were packed ahead of time.
#pragma once

#include "rushlight/engine/types/dot_product.h"
#include "rushlight/platform/workers.h"

namespace rushlight::engine {

void multiply(const QuantizedProduct& product, Workers* workers);

}  // namespace rushlight::engine
