// Means and spreads in double precision, for the few sets of floats that the fast loops, whose sums
// and squares are floats, cannot do: numbers whose sum or squares overflow, and numbers that differ
// by less than the mean of floats is exact to.
#pragma once

#include <cstdint>

#include "rushlight/engine/types/rows.h"

namespace rushlight::engine {

// Of n elements, `stride` apart.
double exact_sum(const float* x, int64_t n, int64_t stride);

// What a norm does to one row, and to one group, whose channels are `channel_stride` apart and the
// elements of one channel `stride`.
void normalize_exactly(const Norm& norm, int64_t row);
void normalize_exactly(const GroupNorm& norm, const float* in, float* out, int64_t first_channel,
                       int64_t channel_stride, int64_t stride);

}  // namespace rushlight::engine
