#include "rushlight/engine/loops/products/peak.h"

#include "rushlight/kernel/loops/vec.h"

namespace rushlight::engine::RL_ISA {
using namespace ::rushlight::kernels::RL_ISA;

namespace {

// Enough accumulators to hide the latency of each, beside two factors, in 32 registers or in x86's
// 16.
#if defined(__SSE__) && !defined(__AVX512F__)
constexpr int kAccumulators = 12;
#else
constexpr int kAccumulators = 24;
#endif

int64_t multiply_adds(int64_t rounds, float* sink) {
  Vec accumulators[kAccumulators];
#pragma GCC unroll 24
  for (int i = 0; i < kAccumulators; ++i) accumulators[i] = splat(*sink + static_cast<float>(i));
  Vec x = splat(*sink + 0.5f);
  const Vec y = splat(*sink + 0.25f);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
    for (int i = 0; i < kAccumulators; ++i) accumulators[i] = accumulators[i] * x + y;
  }
  Vec total = {};
#pragma GCC unroll 24
  for (int i = 0; i < kAccumulators; ++i) total += accumulators[i];
  *sink = total[0];
  return rounds * kAccumulators * kLanes * 2;
}

}  // namespace

const PeakLoops peak_loops = {multiply_adds};

}  // namespace rushlight::engine::RL_ISA
