// What an adapter adds to some columns of a linear layer's result.
#pragma once

#include <cstdint>

#include "rushlight/delegate/adapter.h"
#include "rushlight/platform/workers.h"

namespace rushlight::engine {

constexpr int64_t kAdapterPad = 16;  // rows of SiteWeights::a are filled up to a multiple of it

struct AdapterProduct {
  int64_t rows = 0;
  const float* x = nullptr;  // [rows, in]
  int64_t x_stride = 0;
  float* y = nullptr;  // [rows, out]
  int64_t y_stride = 0;
};

// Adds (x A) B to y. `scratch` has room for rows * rank floats. Each row's result is the same
// whatever the other rows and the number of threads; `workers` may be nullptr.
void add_adapter(const AdapterProduct& product, const SiteWeights& weights, float* scratch,
                 Workers* workers);

}  // namespace rushlight::engine
