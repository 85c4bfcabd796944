// What a processor and its memory reach at most, so that the share of it which operators reach can
// be told. Each is the best of some rounds of milliseconds: what else runs only slows them down.
#pragma once

#include <cstddef>

#include "rushlight/platform/workers.h"

namespace rushlight::engine {

// Floating-point operations per second of all `workers` (nullptr: the caller alone): multiply-adds
// of float32 in registers, two operations each, of the instruction set in use.
double measure_flops(Workers* workers);

// The same of integers: products of bytes in registers, and their additions to int32.
double measure_integer_ops(Workers* workers);

// Bytes per second of all `workers` that read `n` floats, which should be more than caches hold.
double measure_bandwidth(const float* data, size_t n, Workers* workers);

}  // namespace rushlight::engine
