// The most multiply-adds that a processor does: see kernels/peak.h.
#pragma once

#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

struct PeakLoops {
  // `rounds` times as many independent multiply-adds as fill the registers, which they do not
  // leave; the floating-point operations that these were. `sink` gets a value that depends on all.
  int64_t (*multiply_adds)(int64_t rounds, float* sink);
};

// The same of products of bytes, four of which are added to each of a vector's sums.
struct DotPeakLoops {
  int64_t (*dot_products)(int64_t rounds, int32_t* sink);
};

RL_LOOPS(PeakLoops, peak_loops)
RL_DOT_LOOPS(DotPeakLoops, dot_peak_loops)

}  // namespace rushlight::engine
