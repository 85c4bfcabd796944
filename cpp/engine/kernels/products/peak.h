// The peak rates of a processor and its memory, with which operators' rates can be compared. Each
// is the best of some rounds of a few milliseconds, because other work only slows them down.
#pragma once

#include <cstddef>

#include "rushlight/platform/workers.h"

namespace rushlight::engine {

// Floating-point operations per second of all `workers` (nullptr: the caller alone): multiply-adds
// of float32 in registers, two operations each, of the instruction set in use.
double measure_flops(Workers* workers);

// The same for integers: products of bytes in registers, added to int32.
double measure_integer_ops(Workers* workers);

// Bytes per second of all `workers` that read `n` floats, which should not fit in caches.
double measure_bandwidth(const float* data, size_t n, Workers* workers);

}  // namespace rushlight::engine
