// Vectors of uint8, as what they are computed in: four vectors of int32, in whichever order of
// elements is cheapest. It is the order in which groups of four or two bytes lie as well, once the
// bytes of several vectors are put by turns (depthwise.h). Included by loops files only.
#pragma once

#include "rushlight/kernel/loops/vec.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace rushlight::cpu::RL_ISA {

using ::rushlight::kernels::RL_ISA::IntVec;
using ::rushlight::kernels::RL_ISA::kLanes;
using ::rushlight::kernels::RL_ISA::Vec;

constexpr int64_t kBytes = kLanes * 4;
using Bytes = ::rushlight::kernels::RL_ISA::VectorOf<uint8_t>::Type;
using BytesMemory = ::rushlight::kernels::RL_ISA::VectorOf<uint8_t>::Memory;
using Shorts = ::rushlight::kernels::RL_ISA::VectorOf<int16_t>::Type;

struct Quad {
  IntVec v[4];
};

static inline Bytes load_bytes(const uint8_t* p) {
  return *reinterpret_cast<const BytesMemory*>(p);
}
static inline void store_bytes(uint8_t* p, Bytes v) { *reinterpret_cast<BytesMemory*>(p) = v; }
static inline Bytes splat_bytes(uint8_t x) { return x - Bytes{}; }

static inline Bytes max_bytes(Bytes a, Bytes b) { return a > b ? a : b; }
static inline Bytes min_bytes(Bytes a, Bytes b) { return a < b ? a : b; }

#if defined(__AVX512F__)
#define RL_X86(name) _mm512_##name
using Raw = __m512i;
#elif defined(__AVX2__)
#define RL_X86(name) _mm256_##name
using Raw = __m256i;
#elif defined(__SSE2__)
#define RL_X86(name) _mm_##name
using Raw = __m128i;
#endif

#if defined(RL_X86)

static inline Raw raw(Bytes v) { return reinterpret_cast<Raw>(v); }
static inline Raw raw(IntVec v) { return reinterpret_cast<Raw>(v); }

static inline Quad widen(Bytes v) {
  const Raw zero = raw(Bytes{});
  const Raw low = RL_X86(unpacklo_epi8)(raw(v), zero);
  const Raw high = RL_X86(unpackhi_epi8)(raw(v), zero);
  return {{reinterpret_cast<IntVec>(RL_X86(unpacklo_epi16)(low, zero)),
           reinterpret_cast<IntVec>(RL_X86(unpackhi_epi16)(low, zero)),
           reinterpret_cast<IntVec>(RL_X86(unpacklo_epi16)(high, zero)),
           reinterpret_cast<IntVec>(RL_X86(unpackhi_epi16)(high, zero))}};
}

// Saturated.
static inline Bytes narrow(const Quad& q) {
  const Raw low = RL_X86(packs_epi32)(raw(q.v[0]), raw(q.v[1]));
  const Raw high = RL_X86(packs_epi32)(raw(q.v[2]), raw(q.v[3]));
  return reinterpret_cast<Bytes>(RL_X86(packus_epi16)(low, high));
}

#elif defined(RL_NEON)

static inline Quad widen(Bytes v) {
  const uint16x8_t low = vmovl_u8(vget_low_u8(reinterpret_cast<uint8x16_t>(v)));
  const uint16x8_t high = vmovl_high_u8(reinterpret_cast<uint8x16_t>(v));
  return {{reinterpret_cast<IntVec>(vmovl_u16(vget_low_u16(low))),
           reinterpret_cast<IntVec>(vmovl_high_u16(low)),
           reinterpret_cast<IntVec>(vmovl_u16(vget_low_u16(high))),
           reinterpret_cast<IntVec>(vmovl_high_u16(high))}};
}

// Saturated.
static inline Bytes narrow(const Quad& q) {
  const int16x8_t low = vqmovn_high_s32(vqmovn_s32(reinterpret_cast<int32x4_t>(q.v[0])),
                                        reinterpret_cast<int32x4_t>(q.v[1]));
  const int16x8_t high = vqmovn_high_s32(vqmovn_s32(reinterpret_cast<int32x4_t>(q.v[2])),
                                         reinterpret_cast<int32x4_t>(q.v[3]));
  return reinterpret_cast<Bytes>(vqmovun_high_s16(vqmovun_s16(low), high));
}

#else

static inline Quad widen(Bytes v) {
  Quad q;
  for (int64_t i = 0; i < kBytes; ++i) q.v[i / kLanes][i % kLanes] = v[i];
  return q;
}

// Saturated.
static inline Bytes narrow(const Quad& q) {
  Bytes v;
  for (int64_t i = 0; i < kBytes; ++i) {
    const int32_t x = q.v[i / kLanes][i % kLanes];
    v[i] = static_cast<uint8_t>(x < 0 ? 0 : x > 255 ? 255 : x);
  }
  return v;
}

#endif

// Floats that were clamped to +-2^22 at most, to the nearest integers, ties to even: by adding a
// number whose last bit is worth 1.
static inline IntVec round_even(Vec v) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23
  constexpr int32_t kMagicBits = 0x4b400000;
  using namespace ::rushlight::kernels::RL_ISA;
  return bits(v + splat(kMagic)) - splat_int(kMagicBits);
}

// What Requantize says (kernels/quantized.h), in vectors.
struct RequantizeVec {
  Vec low, high;  // before the zero point is added
  IntVec zero_point;

  template <typename Requantize>
  explicit RequantizeVec(const Requantize& given) {
    using namespace ::rushlight::kernels::RL_ISA;
    low = splat(static_cast<float>(given.low - given.zero_point));
    high = splat(static_cast<float>(given.high - given.zero_point));
    zero_point = splat_int(given.zero_point);
  }
  // Of NaN, the least.
  IntVec apply(IntVec sum, Vec multiplier) const {
    using namespace ::rushlight::kernels::RL_ISA;
    const Vec scaled = __builtin_convertvector(sum, Vec) * multiplier;
    return round_even(min_of(max_of(scaled, low), high)) + zero_point;
  }
};

}  // namespace rushlight::cpu::RL_ISA
