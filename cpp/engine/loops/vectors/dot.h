// Dot products of four uint8 with four int8 in each 32-bit lane, exact on every instruction set.
// Included by loops files dot_*.cpp only.
//
// Without an instruction for uint8 times int8, bytes are widened to 16 bits (x86), or 128 is
// subtracted from A (NEON). Then kOffset must be subtracted from each term of A, and sums are
// corrected by kOffset times the sum of the weights.
#pragma once

#include <cstring>

#include "rushlight/engine/loops/vectors/integers.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace rushlight::engine::RL_ISA {
using namespace ::rushlight::kernels::RL_ISA;

// Loads kLanes quads from any address.
static inline IntVec load_lanes(const void* p) {
  using Memory = int32_t __attribute__((vector_size(kLanes * 4), aligned(1), may_alias));
  return *static_cast<const Memory*>(p);
}
static inline uint32_t bytes_at(const void* p) {
  uint32_t quad;
  std::memcpy(&quad, p, sizeof(quad));
  return quad;
}
// Loads the first n bytes, 1 to 3, and zeros.
static inline uint32_t bytes_at(const void* p, int64_t n) {
  const auto* bytes = static_cast<const uint8_t*>(p);
  uint32_t quad = bytes[0];
  if (n > 1) quad |= static_cast<uint32_t>(bytes[1]) << 8;
  if (n > 2) quad |= static_cast<uint32_t>(bytes[2]) << 16;
  return quad;
}
static inline IntVec all_lanes(uint32_t x) { return splat_int(static_cast<int32_t>(x)); }

#if defined(__AVX512VNNI__)

constexpr int kOffset = 0;
using Quads = IntVec;    // of kLanes columns
using RowQuad = IntVec;  // of a row, for all columns
static inline Quads quads_at(IntVec b) { return b; }
static inline RowQuad quad_of(uint32_t a) { return all_lanes(a); }
using Lanes = IntVec;  // four bytes of A in each lane
static inline Lanes lanes_at(IntVec a) { return a; }
static inline IntVec add_dot(IntVec sum, Quads b, RowQuad a) {
  return reinterpret_cast<IntVec>(_mm512_dpbusd_epi32(
      reinterpret_cast<__m512i>(sum), reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}

#elif defined(__SSE2__)

// Terms 0 and 2, and terms 1 and 3, as 16 bits each.
struct Pairs {
  IntVec even, odd;
};
constexpr int kOffset = 0;
using Quads = Pairs;
using RowQuad = Pairs;
using Shorts = VectorOf<int16_t>::Type;
static inline Quads quads_at(IntVec b) {
  const auto shorts = reinterpret_cast<Shorts>(b);
  return {reinterpret_cast<IntVec>((shorts << 8) >> 8), reinterpret_cast<IntVec>(shorts >> 8)};
}
using Lanes = Pairs;
static inline Lanes lanes_at(IntVec a) {
  using Unsigned = VectorOf<uint16_t>::Type;
  return {a & splat_int(0x00ff00ff), reinterpret_cast<IntVec>(reinterpret_cast<Unsigned>(a) >> 8)};
}
static inline RowQuad quad_of(uint32_t a) { return lanes_at(all_lanes(a)); }
static inline IntVec multiply_pairs(IntVec a, IntVec b) {
#if defined(__AVX512BW__)
  return reinterpret_cast<IntVec>(
      _mm512_madd_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<IntVec>(
      _mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#else
  return reinterpret_cast<IntVec>(
      _mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#endif
}
static inline IntVec add_dot(IntVec sum, Quads b, RowQuad a) {
  return wrap_add(sum, multiply_pairs(a.even, b.even) + multiply_pairs(a.odd, b.odd));
}

#elif defined(RL_NEON)

using Quads = int8x16_t;
static inline Quads quads_at(IntVec b) { return vreinterpretq_s8_s32(b); }

#if defined(__ARM_FEATURE_MATMUL_INT8)

constexpr int kOffset = 0;
using RowQuad = uint8x8_t;
static inline RowQuad quad_of(uint32_t a) { return vreinterpret_u8_u32(vdup_n_u32(a)); }
static inline IntVec add_dot(IntVec sum, Quads b, RowQuad a) {
  return vsudotq_lane_s32(sum, b, a, 0);
}
using Lanes = uint8x16_t;
static inline Lanes lanes_at(IntVec a) { return vreinterpretq_u8_s32(a); }
static inline IntVec add_dot(IntVec sum, Quads b, Lanes a) { return vusdotq_s32(sum, a, b); }

#else

constexpr int kOffset = 128;
using RowQuad = int8x8_t;
static inline RowQuad quad_of(uint32_t a) {
  return vreinterpret_s8_u32(vdup_n_u32(a ^ 0x80808080u));
}
using Lanes = int8x16_t;
static inline Lanes lanes_at(IntVec a) {
  return veorq_s8(vreinterpretq_s8_s32(a), vdupq_n_s8(-128));
}
static inline IntVec add_dot(IntVec sum, Quads b, Lanes a) {
#if defined(__ARM_FEATURE_DOTPROD)
  return vdotq_s32(sum, b, a);
#else
  const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(b), vget_low_s8(a)));
  const int32x4_t high = vpaddlq_s16(vmull_high_s8(b, a));
  return vaddq_s32(sum, vpaddq_s32(low, high));
#endif
}
static inline IntVec add_dot(IntVec sum, Quads b, RowQuad a) {
#if defined(__ARM_FEATURE_DOTPROD)
  return vdotq_lane_s32(sum, b, a, 0);
#else
  return add_dot(sum, b, vcombine_s8(a, a));
#endif
}

#endif

#else

constexpr int kOffset = 0;
using Quads = VectorOf<int8_t>::Type;
using RowQuad = uint32_t;
static inline Quads quads_at(IntVec b) { return reinterpret_cast<Quads>(b); }
static inline RowQuad quad_of(uint32_t a) { return a; }
using Lanes = VectorOf<uint8_t>::Type;
static inline Lanes lanes_at(IntVec a) { return reinterpret_cast<Lanes>(a); }
static inline IntVec add_dot(IntVec sum, Quads b, Lanes a) {
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    for (int64_t k = 0; k < 4; ++k) sum[lane] += a[lane * 4 + k] * b[lane * 4 + k];
  }
  return sum;
}
static inline IntVec add_dot(IntVec sum, Quads b, RowQuad a) {
  return add_dot(sum, b, lanes_at(all_lanes(a)));
}

#endif

}  // namespace rushlight::engine::RL_ISA
