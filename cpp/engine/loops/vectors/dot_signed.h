// Dot products of four int8 of a row, from -127 to 127, with weights of 8 or 4 bits in each 32-bit
// lane, exact on every instruction set. Included by loops files dot_*.cpp only.
//
// Instructions that multiply bytes take unsigned ones by signed ones. Where that is the fastest
// way, a constant is added to weights to make them unsigned. It makes each sum too great by so many
// times the sum of the row's terms, which is the same for all columns and known beforehand.
#pragma once

#include "rushlight/engine/loops/vectors/dot.h"

namespace rushlight::engine::RL_ISA {

// The upper or the lower halves of bytes: weights of 4 bits, times 16 or plus 8.
template <bool kHigh>
static inline IntVec times_16(IntVec b) {
  const auto both = reinterpret_cast<UnsignedVec>(b);
  return reinterpret_cast<IntVec>((kHigh ? both : both << 4) & 0xf0f0f0f0u);
}
template <bool kHigh>
static inline IntVec plus_8(IntVec b) {
  const auto both = reinterpret_cast<UnsignedVec>(b);
  return reinterpret_cast<IntVec>(((kHigh ? both >> 4 : both) & 0x0f0f0f0fu) ^ 0x08080808u);
}

// The product wraps: sums of rows may come from a damaged file.
static inline int32_t added_by(int32_t added, int32_t row_sum) {
  return static_cast<int32_t>(static_cast<uint32_t>(added) * static_cast<uint32_t>(row_sum));
}

// What follows is SignedDot<kBits> for weights of 8 and 4 bits:
//   Row, row(a)              a quad of a row, for all columns
//   Quads, quads(b)          the quads of kLanes columns; quads<kHigh>(b) of 4 bits
//   Sum, start(row_sum)      a sum of at most kMaxRowGroup terms; those of the row add up to
//   row_sum add(&sum, quads, row) integers(sum, row_sum)   the sum times kParts

#if defined(__AVX512VNNI__)

template <int kBits>
struct SignedDot {
  static constexpr int kParts = 1;
  static constexpr int32_t kAdded = kBits == 8 ? 128 : 8;
  using Row = IntVec;
  using Quads = IntVec;
  using Sum = IntVec;
  static Row row(uint32_t a) { return all_lanes(a); }
  static Quads quads(IntVec b) { return b ^ splat_int(static_cast<int32_t>(0x80808080u)); }
  template <bool kHigh>
  static Quads quads(IntVec b) {
    return plus_8<kHigh>(b);
  }
  static Sum start(int32_t row_sum) {
    // Multiplications would take the place of dot products.
    const auto sum = reinterpret_cast<UnsignedVec>(splat_int(row_sum));
    return reinterpret_cast<IntVec>((UnsignedVec{} - sum) << (kBits == 8 ? 7 : 3));
  }
  static void add(Sum* sum, Quads b, Row a) { *sum = add_dot(*sum, a, b); }
  static IntVec integers(Sum sum, int32_t) { return sum; }
};

#elif defined(__SSE2__)

// Weights and terms are widened to 16 bits.
template <int kBits>
struct SignedPairs {
  static constexpr int kParts = kBits == 8 ? 1 : 16;
  using Row = Pairs;
  using Quads = Pairs;
  using Sum = IntVec;
  static Row row(uint32_t a) { return quads_at(all_lanes(a)); }
  static Quads quads(IntVec b) { return quads_at(b); }
  template <bool kHigh>
  static Quads quads(IntVec b) {
    return quads_at(times_16<kHigh>(b));
  }
  static Sum start(int32_t) { return IntVec{}; }
  static void add(Sum* sum, Quads b, Row a) { *sum = add_dot(*sum, b, a); }
  static IntVec integers(Sum sum, int32_t) { return sum; }
};

template <int kBits>
struct SignedDot : SignedPairs<kBits> {};

#if defined(__AVX2__)

#if defined(__AVX512BW__)
#define RL_WIDE(name) _mm512_##name
using Wide = __m512i;
#else
#define RL_WIDE(name) _mm256_##name
using Wide = __m256i;
#endif
static inline Wide wide(IntVec v) { return reinterpret_cast<Wide>(v); }
// Neighbours among 16-bit numbers times a factor, added up.
template <int kFactor = 1>
static inline IntVec add_neighbours(Wide shorts) {
  return reinterpret_cast<IntVec>(RL_WIDE(madd_epi16)(shorts, RL_WIDE(set1_epi16)(kFactor)));
}
// Products of uint8 and int8, of which neighbours are added up: 16-bit numbers.
static inline Wide byte_products(Wide a, Wide b) { return RL_WIDE(maddubs_epi16)(a, b); }
static inline Wide add_shorts(Wide a, Wide b) { return RL_WIDE(add_epi16)(a, b); }

// Sums of 16 bits: kMaxRowGroup / 2 products of a term and a weight up to 15.
static_assert(kMaxRowGroup / 2 * 15 * 127 <= INT16_MAX, "sums do not overflow");
template <>
struct SignedDot<4> {
  static constexpr int kParts = 1;
  static constexpr int32_t kAdded = 8;
  using Row = IntVec;
  using Quads = IntVec;
  using Sum = Wide;
  static Row row(uint32_t a) { return all_lanes(a); }
  template <bool kHigh>
  static Quads quads(IntVec b) {
    return plus_8<kHigh>(b);
  }
  static Sum start(int32_t) { return wide(IntVec{}); }
  static void add(Sum* sum, Quads b, Row a) {
    *sum = add_shorts(*sum, byte_products(wide(b), wide(a)));
  }
  static IntVec integers(Sum sum, int32_t row_sum) {
    return wrap_add(add_neighbours(sum), splat_int(added_by(-kAdded, row_sum)));
  }
};

#if !defined(__AVX512BW__)  // which has no vpsignb

// The magnitudes of weights, times terms with the weights' signs.
template <>
struct SignedDot<8> {
  static constexpr int kParts = 1;
  struct Quads {
    Wide magnitudes, weights;
  };
  using Row = IntVec;
  using Sum = IntVec;
  static Row row(uint32_t a) { return all_lanes(a); }
  static Quads quads(IntVec b) { return {_mm256_abs_epi8(wide(b)), wide(b)}; }
  static Sum start(int32_t) { return IntVec{}; }
  static void add(Sum* sum, Quads b, Row a) {
    const Wide terms = _mm256_sign_epi8(wide(a), b.weights);
    *sum += add_neighbours(byte_products(b.magnitudes, terms));
  }
  static IntVec integers(Sum sum, int32_t) { return sum; }
};

#endif
#undef RL_WIDE
#endif

#else

template <int kBits>
struct SignedDot {
  static constexpr int kParts = kBits == 8 ? 1 : 16;
  using Quads = ::rushlight::engine::RL_ISA::Quads;
  using Sum = IntVec;
  static Quads quads(IntVec b) { return quads_at(b); }
  template <bool kHigh>
  static Quads quads(IntVec b) {
    return quads_at(times_16<kHigh>(b));
  }
  static Sum start(int32_t) { return IntVec{}; }
  static IntVec integers(Sum sum, int32_t) { return sum; }

#if defined(RL_NEON)
  using Row = int8x8_t;
  static Row row(uint32_t a) { return vreinterpret_s8_u32(vdup_n_u32(a)); }
  static void add(Sum* sum, Quads b, Row a) {
#if defined(__ARM_FEATURE_DOTPROD)
    *sum = vdotq_lane_s32(*sum, b, a, 0);
#else
    *sum = add_dot(*sum, b, a);
#endif
  }
#else
  using Row = Quads;
  static Row row(uint32_t a) { return quads_at(all_lanes(a)); }
  static void add(Sum* sum, Quads b, Row a) {
    for (int64_t i = 0; i < kLanes * kQuad; ++i) (*sum)[i / kQuad] += a[i] * b[i];
  }
#endif
};

#endif

}  // namespace rushlight::engine::RL_ISA
