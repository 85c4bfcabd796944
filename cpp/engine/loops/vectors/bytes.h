// Blocks of uint8, and the integers of 16 and 32 bits that they are computed in. Included by loops
// files only.
#pragma once

#include <cstring>

#include "rushlight/kernel/loops/vec.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace rushlight::engine::RL_ISA {

using ::rushlight::kernels::RL_ISA::IntVec;
using ::rushlight::kernels::RL_ISA::kLanes;
using ::rushlight::kernels::RL_ISA::Vec;

constexpr int64_t kBlock = kLanes * 4;
using Block = ::rushlight::kernels::RL_ISA::VectorOf<uint8_t>::Type;
using BlockMemory = ::rushlight::kernels::RL_ISA::VectorOf<uint8_t>::Memory;
using Shorts = ::rushlight::kernels::RL_ISA::VectorOf<uint16_t>::Type;

// Its elements as 16 and as 32 bits, in the order that is cheapest.
struct Halves {
  Shorts v[2];
};
struct Quad {
  IntVec v[4];
};

static inline Block load_block(const uint8_t* p) {
  return *reinterpret_cast<const BlockMemory*>(p);
}
static inline void store_block(uint8_t* p, Block v) { *reinterpret_cast<BlockMemory*>(p) = v; }
// Loads the first n elements, at most a whole block; the others are zero.
static inline Block load_block(const uint8_t* p, int64_t n) {
  if (n >= kBlock) return load_block(p);
#if defined(__AVX512BW__)
  return reinterpret_cast<Block>(_mm512_maskz_loadu_epi8((__mmask64{1} << n) - 1, p));
#else
  Block v = {};
  std::memcpy(&v, p, static_cast<size_t>(n));
  return v;
#endif
}
static inline void store_block(uint8_t* p, Block v, int64_t n) {
  if (n >= kBlock) return store_block(p, v);
#if defined(__AVX512BW__)
  _mm512_mask_storeu_epi8(p, (__mmask64{1} << n) - 1, reinterpret_cast<__m512i>(v));
#else
  std::memcpy(p, &v, static_cast<size_t>(n));
#endif
}
static inline Block splat_block(uint8_t x) { return x - Block{}; }

static inline Block max_block(Block a, Block b) { return a > b ? a : b; }
static inline Block min_block(Block a, Block b) { return a < b ? a : b; }

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

static inline Raw raw(Block v) { return reinterpret_cast<Raw>(v); }
static inline Raw raw(IntVec v) { return reinterpret_cast<Raw>(v); }

static inline Halves halve(Block v) {
  const Raw zero = raw(Block{});
  return {{reinterpret_cast<Shorts>(RL_X86(unpacklo_epi8)(raw(v), zero)),
           reinterpret_cast<Shorts>(RL_X86(unpackhi_epi8)(raw(v), zero))}};
}

static inline Quad widen(const Halves& h) {
  const Raw zero = raw(Block{});
  Quad q;
#pragma GCC unroll 2
  for (int64_t i = 0; i < 2; ++i) {
    const Raw half = reinterpret_cast<Raw>(h.v[i]);
    q.v[2 * i] = reinterpret_cast<IntVec>(RL_X86(unpacklo_epi16)(half, zero));
    q.v[2 * i + 1] = reinterpret_cast<IntVec>(RL_X86(unpackhi_epi16)(half, zero));
  }
  return q;
}

// Saturated.
static inline Block narrow(const Quad& q) {
  const Raw low = RL_X86(packs_epi32)(raw(q.v[0]), raw(q.v[1]));
  const Raw high = RL_X86(packs_epi32)(raw(q.v[2]), raw(q.v[3]));
  return reinterpret_cast<Block>(RL_X86(packus_epi16)(low, high));
}

#elif defined(RL_NEON)

static inline Halves halve(Block v) {
  const auto bytes = reinterpret_cast<uint8x16_t>(v);
  return {{reinterpret_cast<Shorts>(vmovl_u8(vget_low_u8(bytes))),
           reinterpret_cast<Shorts>(vmovl_high_u8(bytes))}};
}

static inline Quad widen(const Halves& h) {
  Quad q;
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const auto half = reinterpret_cast<uint16x8_t>(h.v[i]);
    q.v[2 * i] = reinterpret_cast<IntVec>(vmovl_u16(vget_low_u16(half)));
    q.v[2 * i + 1] = reinterpret_cast<IntVec>(vmovl_high_u16(half));
  }
  return q;
}

// Saturated.
static inline Block narrow(const Quad& q) {
  const int16x8_t low = vqmovn_high_s32(vqmovn_s32(reinterpret_cast<int32x4_t>(q.v[0])),
                                        reinterpret_cast<int32x4_t>(q.v[1]));
  const int16x8_t high = vqmovn_high_s32(vqmovn_s32(reinterpret_cast<int32x4_t>(q.v[2])),
                                         reinterpret_cast<int32x4_t>(q.v[3]));
  return reinterpret_cast<Block>(vqmovun_high_s16(vqmovun_s16(low), high));
}

#else

static inline Halves halve(Block v) {
  Halves h;
  for (int64_t i = 0; i < kBlock; ++i) h.v[i / (2 * kLanes)][i % (2 * kLanes)] = v[i];
  return h;
}

static inline Quad widen(const Halves& h) {
  Quad q;
  for (int64_t i = 0; i < kBlock; ++i) {
    q.v[i / kLanes][i % kLanes] = h.v[i / (2 * kLanes)][i % (2 * kLanes)];
  }
  return q;
}

// Saturated.
static inline Block narrow(const Quad& q) {
  Block v;
  for (int64_t i = 0; i < kBlock; ++i) {
    const int32_t x = q.v[i / kLanes][i % kLanes];
    v[i] = static_cast<uint8_t>(x < 0 ? 0 : x > 255 ? 255 : x);
  }
  return v;
}

#endif

static inline Quad widen(Block v) { return widen(halve(v)); }

// Rounds floats within +-2^22 to the nearest integers, ties to even.
static inline IntVec round_even(Vec v) {
#if defined(__AVX512F__)
  return reinterpret_cast<IntVec>(_mm512_cvtps_epi32(v));
#elif defined(__AVX__)
  return reinterpret_cast<IntVec>(_mm256_cvtps_epi32(v));
#elif defined(__SSE2__)
  return reinterpret_cast<IntVec>(_mm_cvtps_epi32(v));
#elif defined(RL_NEON)
  return reinterpret_cast<IntVec>(vcvtnq_s32_f32(v));
#else
  // By adding a number whose last bit is worth 1.
  using namespace ::rushlight::kernels::RL_ISA;
  return bits(v + splat(12582912.0f)) - splat_int(0x4b400000);
#endif
}

// Requantize (engine/types/quantized.h) in vectors.
struct RequantizeVec {
  Vec low, high;  // before the zero point is added
  IntVec zero_point;

  template <typename Requantize>
  explicit RequantizeVec(const Requantize& requantize) {
    using namespace ::rushlight::kernels::RL_ISA;
    low = splat(static_cast<float>(requantize.low - requantize.zero_point));
    high = splat(static_cast<float>(requantize.high - requantize.zero_point));
    zero_point = splat_int(requantize.zero_point);
  }
  IntVec apply(IntVec sum, Vec multiplier) const {
    return round(__builtin_convertvector(sum, Vec) * multiplier);
  }
  // NaN gives the least.
  IntVec round(Vec number) const {
    using namespace ::rushlight::kernels::RL_ISA;
    return round_even(min_of(max_of(number, low), high)) + zero_point;
  }
};

// The sums of QuantizedBinary (engine/types/quantized.h) in vectors, without its bounds.
struct SumVec {
  IntVec bias, a_multiplier, b_multiplier, zero_point;
  int32_t shift;

  template <typename Binary>
  explicit SumVec(const Binary& binary) : shift(binary.shift) {
    using namespace ::rushlight::kernels::RL_ISA;
    bias = splat_int(binary.bias);
    a_multiplier = splat_int(binary.a_multiplier);
    b_multiplier = splat_int(binary.b_multiplier);
    zero_point = splat_int(binary.requantize.zero_point);
  }
  IntVec apply(IntVec a, IntVec b) const {
    return ((bias + a * a_multiplier + b * b_multiplier) >> shift) + zero_point;
  }
};

}  // namespace rushlight::engine::RL_ISA
