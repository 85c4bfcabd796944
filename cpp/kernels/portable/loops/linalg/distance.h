// Inner loops of distances: one row against many, whose elements lie side by side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

enum class Distance { Nonzero, Absolute, Squared, Power, Greatest, Count };

// acc[j] takes what the differences a[i] - columns[i * pitch + j] give, for i < n: 1 for each that
// is not zero, |d|, d^2, |d|^p; or the greatest |d|, where NaN counts as greatest. The number of
// columns is a multiple of kDistanceLanes.
using DistanceFn = void (*)(const void* a, size_t n, const void* columns, size_t pitch,
                            size_t count, double p, void* acc);
// The last operation on the sums: a root.
using DistanceRootFn = void (*)(void* acc, size_t count, double p);

constexpr size_t kDistanceLanes = 16;

// Tables: [0] float, [1] double (kF32, kF64).
struct DistanceLoops {
  DistanceFn fold[static_cast<size_t>(Distance::Count)][2];
  DistanceRootFn root[2];
};

RL_LOOPS(DistanceLoops, distance_loops)

}  // namespace rushlight::kernels
