// Inner loops of distances: compares one row with many, whose elements are adjacent.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

enum class Distance { Nonzero, Absolute, Squared, Power, Greatest, Count };

// Folds the differences d = a[i] - columns[i * pitch + j], i < n, into acc[j]. It adds 1 for each
// difference that is not zero, or |d|, d^2 or |d|^p; or it takes the greatest |d|, where NaN counts
// as greatest. The number of columns is a multiple of kDistanceLanes.
using DistanceFn = void (*)(const void* a, size_t n, const void* columns, size_t pitch,
                            size_t count, double p, void* acc);
// The root that is taken of the final sums.
using DistanceRootFn = void (*)(void* acc, size_t count, double p);

constexpr size_t kDistanceLanes = 16;

// In tables, [0] is float and [1] double (kF32, kF64).
struct DistanceLoops {
  DistanceFn fold[static_cast<size_t>(Distance::Count)][2];
  DistanceRootFn root[2];
};

RL_LOOPS(DistanceLoops, distance_loops)

}  // namespace rushlight::kernels
