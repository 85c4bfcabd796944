// Means and variances in double precision, for the rare inputs for which the fast loops' float sums
// are not good enough: numbers whose sum or squares overflow, and numbers that differ by less than
// the rounding error of their mean.
#pragma once

#include <cstdint>

#include "rushlight/engine/types/rows.h"

namespace rushlight::engine {

// The sum of n elements that are `stride` apart.
double exact_sum(const float* x, int64_t n, int64_t stride);

// Normalize one row, or one group whose channels are `channel_stride` apart, with the elements of
// each `stride` apart.
void normalize_exactly(const Norm& norm, int64_t row);
void normalize_exactly(const GroupNorm& norm, const float* in, float* out, int64_t first_channel,
                       int64_t channel_stride, int64_t stride);

}  // namespace rushlight::engine
