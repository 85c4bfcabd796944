#include "rushlight/engine/loops/products/peak.h"

#include "rushlight/kernel/loops/vec.h"

namespace rushlight::engine::RL_ISA {
using namespace ::rushlight::kernels::RL_ISA;

namespace {

// Enough accumulators to hide the latency of each, beside two factors, in 32 registers or in x86's
// 16.
#if defined(__SSE__) && !defined(__AVX512F__)
constexpr int kSums = 12;
#else
constexpr int kSums = 24;
#endif

int64_t multiply_adds(int64_t rounds, float* sink) {
  Vec sums[kSums];
#pragma GCC unroll 24
  for (int i = 0; i < kSums; ++i) sums[i] = splat(*sink + static_cast<float>(i));
  Vec x = splat(*sink + 0.5f);
  const Vec y = splat(*sink + 0.25f);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
    for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * x + y;
  }
  Vec total = {};
#pragma GCC unroll 24
  for (int i = 0; i < kSums; ++i) total += sums[i];
  *sink = total[0];
  return rounds * kSums * kLanes * 2;
}

}  // namespace

const PeakLoops peak_loops = {multiply_adds};

}  // namespace rushlight::engine::RL_ISA
