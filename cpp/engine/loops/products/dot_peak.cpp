#include "rushlight/engine/loops/products/peak.h"
#include "rushlight/engine/loops/vectors/dot.h"

namespace rushlight::engine::RL_ISA {
namespace {

// Enough accumulators to hide the latency of each, in 32 registers or in x86's 16.
#if defined(__SSE__) && !defined(__AVX512F__)
constexpr int kAccumulators = 10;
#else
constexpr int kAccumulators = 24;
#endif

// Keeps the compiler from computing the products once for all sums.
inline void hide([[maybe_unused]] Quads& b) {
#if defined(__SSE2__) && !defined(__AVX512VNNI__)
  asm("" : "+v"(b.even), "+v"(b.odd));
#endif
}

int64_t dot_products(int64_t rounds, int32_t* sink) {
  IntVec accumulators[kAccumulators];
#pragma GCC unroll 24
  for (int i = 0; i < kAccumulators; ++i) accumulators[i] = splat_int(*sink + i);
  Quads b = quads_at(splat_int(*sink + 0x01020304));
  for (int64_t round = 0; round < rounds; ++round) {
    const RowQuad a = quad_of(static_cast<uint32_t>(round));
#pragma GCC unroll 24
    for (int i = 0; i < kAccumulators; ++i) {
      hide(b);
      accumulators[i] = add_dot(accumulators[i], b, a);
    }
  }
  IntVec total = {};
#pragma GCC unroll 24
  for (int i = 0; i < kAccumulators; ++i) total ^= accumulators[i];
  *sink = total[0];
  return rounds * kAccumulators * kLanes * 4 * 2;
}

}  // namespace

const DotPeakLoops dot_peak_loops = {dot_products};

}  // namespace rushlight::engine::RL_ISA
