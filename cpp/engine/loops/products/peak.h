// The most multiply-adds that a processor does: see kernels/peak.h.
#pragma once

#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

struct PeakLoops {
  // Runs `rounds` rounds of independent multiply-adds in registers, and returns how many
  // floating-point operations they were. `sink` gets a value that depends on all of them.
  int64_t (*multiply_adds)(int64_t rounds, float* sink);
};

// The same for products of bytes, four of which are added to each lane.
struct DotPeakLoops {
  int64_t (*dot_products)(int64_t rounds, int32_t* sink);
};

RL_LOOPS(PeakLoops, peak_loops)
RL_DOT_LOOPS(DotPeakLoops, dot_peak_loops)

}  // namespace rushlight::engine
