// Dot products of two int16 each in the 32-bit lanes of vectors, summed in int32. Included by loops
// files dot_*.cpp only.
#pragma once

#include "rushlight/engine/loops/vectors/integers.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace rushlight::engine::RL_ISA {

using PairVec = ::rushlight::kernels::RL_ISA::VectorOf<int16_t>::Type;

// Terms 0 and 2, and terms 1 and 3, of the four int8 in each 32-bit lane.
struct SplitQuads {
  PairVec even, odd;
};
static inline SplitQuads split_quads(IntVec quads) {
  const auto shorts = reinterpret_cast<PairVec>(quads);
  return {(shorts << 8) >> 8, shorts >> 8};
}

#if defined(RL_NEON)

// The products of pairs are added up at the end.
struct PairSums {
  int32x4_t low = vdupq_n_s32(0);
  int32x4_t high = vdupq_n_s32(0);
};
static inline void add_pairs(PairSums& sums, PairVec a, PairVec b) {
  sums.low = vmlal_s16(sums.low, vget_low_s16(a), vget_low_s16(b));
  sums.high = vmlal_high_s16(sums.high, a, b);
}
static inline IntVec total(const PairSums& sums) { return vpaddq_s32(sums.low, sums.high); }

#else

struct PairSums {
  IntVec sums = {};
};
static inline void add_pairs(PairSums& to, PairVec a, PairVec b) {
#if defined(__AVX512VNNI__)
  to.sums = reinterpret_cast<IntVec>(_mm512_dpwssd_epi32(reinterpret_cast<__m512i>(to.sums),
                                                         reinterpret_cast<__m512i>(a),
                                                         reinterpret_cast<__m512i>(b)));
#elif defined(__AVX512BW__)
  to.sums += reinterpret_cast<IntVec>(
      _mm512_madd_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  to.sums += reinterpret_cast<IntVec>(
      _mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__SSE2__)
  to.sums += reinterpret_cast<IntVec>(
      _mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  for (int64_t lane = 0; lane < ::rushlight::kernels::RL_ISA::kLanes; ++lane) {
    to.sums[lane] += a[2 * lane] * b[2 * lane] + a[2 * lane + 1] * b[2 * lane + 1];
  }
#endif
}
static inline IntVec total(const PairSums& sums) { return sums.sums; }

#endif

}  // namespace rushlight::engine::RL_ISA
