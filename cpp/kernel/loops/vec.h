// Float vectors of the instruction set that a loops file is compiled for, in the compiler's own
// vector notation: 16 lanes with AVX-512, 8 with AVX, else 4 (NEON, SSE; plain code where there is
// neither). RL_NEON is defined where code is written for NEON. Included by loops files only (see
// dispatch.h).
#pragma once

#include <cstdint>

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__SSE__)
#include <xmmintrin.h>
#elif defined(RL_NEON)
#include <arm_neon.h>
#endif

namespace rushlight::kernels::RL_ISA {

#if defined(__AVX512F__)
constexpr int64_t kLanes = 16;
#elif defined(__AVX__)
constexpr int64_t kLanes = 8;
#else
constexpr int64_t kLanes = 4;
#endif

using Vec = float __attribute__((vector_size(kLanes * 4)));
using IntVec = int32_t __attribute__((vector_size(kLanes * 4)));
// The same in memory: aligned as its elements are, and allowed to alias them.
using VecMemory = float __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
using IntVecMemory = int32_t __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

// The same for any type of elements.
template <typename T>
struct VectorOf {
  static constexpr int64_t kCount = kLanes * 4 / static_cast<int64_t>(sizeof(T));
  // Not `using`, in which GCC ignores attributes of a type that depends on T.
  typedef T Type __attribute__((vector_size(kLanes * 4)));
  typedef T Memory __attribute__((vector_size(kLanes * 4), aligned(sizeof(T)), may_alias));
};

static inline Vec load(const float* p) { return *reinterpret_cast<const VecMemory*>(p); }
static inline void store(float* p, Vec v) { *reinterpret_cast<VecMemory*>(p) = v; }
static inline IntVec load_int(const int32_t* p) {
  return *reinterpret_cast<const IntVecMemory*>(p);
}
static inline void store_int(int32_t* p, IntVec v) { *reinterpret_cast<IntVecMemory*>(p) = v; }

// All lanes equal. Subtracting zero changes no value, so that compilers see a bare broadcast.
static inline Vec splat(float x) { return x - Vec{}; }
static inline IntVec splat_int(int32_t x) { return x - IntVec{}; }

static inline IntVec bits(Vec v) { return reinterpret_cast<IntVec>(v); }
static inline Vec from_bits(IntVec v) { return reinterpret_cast<Vec>(v); }

// A factor of all lanes, and sum + v * factor. NEON multiplies by a lane of a register, with no
// instruction to broadcast it.
#if defined(RL_NEON)
using Factor = float;
static inline Factor factor_at(const float* p) {
  float factor = *p;
  asm("" : "+w"(factor));  // to the vectors' registers, by one load
  return factor;
}
static inline Vec add_product(Vec sum, Vec v, Factor factor) { return vfmaq_n_f32(sum, v, factor); }
#else
using Factor = Vec;
static inline Factor factor_at(const float* p) { return splat(*p); }
static inline Vec add_product(Vec sum, Vec v, Factor factor) { return sum + factor * v; }
#endif

// The first n lanes from memory, n < kLanes, the others zero; and to memory, nothing beyond them.
#if defined(__AVX512F__)
static inline Vec load_first(const float* p, int64_t n) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1u), p);
}
static inline void store_first(float* p, Vec v, int64_t n) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1u), v);
}
#elif defined(__AVX2__)
static inline __m256i first_lanes(int64_t n) {
  const IntVec index = {0, 1, 2, 3, 4, 5, 6, 7};
  return reinterpret_cast<__m256i>(index < splat_int(static_cast<int32_t>(n)));
}
static inline Vec load_first(const float* p, int64_t n) {
  return _mm256_maskload_ps(p, first_lanes(n));
}
static inline void store_first(float* p, Vec v, int64_t n) {
  _mm256_maskstore_ps(p, first_lanes(n), v);
}
#elif defined(RL_NEON)
static inline Vec load_first(const float* p, int64_t n) {
  float32x2_t low = {};
  float32x2_t high = {};
  if ((n & 2) != 0) {
    low = vld1_f32(p);
    if ((n & 1) != 0) high = vld1_lane_f32(p + 2, high, 0);
  } else if ((n & 1) != 0) {
    low = vld1_lane_f32(p, low, 0);
  }
  return vcombine_f32(low, high);
}
static inline void store_first(float* p, Vec v, int64_t n) {
  float32x2_t rest = vget_low_f32(v);
  if ((n & 2) != 0) {
    vst1_f32(p, rest);
    rest = vget_high_f32(v);
    p += 2;
  }
  if ((n & 1) != 0) vst1_lane_f32(p, rest, 0);
}
#else
static inline Vec load_first(const float* p, int64_t n) {
  Vec v = {};
  for (int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
static inline void store_first(float* p, Vec v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = v[i];
}
#endif

// a > b ? a : b, so b where one of them is NaN; and the lesser, likewise.
#if defined(__AVX512F__)
static inline Vec max_of(Vec a, Vec b) { return _mm512_max_ps(a, b); }
static inline Vec min_of(Vec a, Vec b) { return _mm512_min_ps(a, b); }
#elif defined(__AVX__)
static inline Vec max_of(Vec a, Vec b) { return _mm256_max_ps(a, b); }
static inline Vec min_of(Vec a, Vec b) { return _mm256_min_ps(a, b); }
#elif defined(__SSE__)
static inline Vec max_of(Vec a, Vec b) { return _mm_max_ps(a, b); }
static inline Vec min_of(Vec a, Vec b) { return _mm_min_ps(a, b); }
#else
static inline Vec max_of(Vec a, Vec b) { return a > b ? a : b; }
static inline Vec min_of(Vec a, Vec b) { return a < b ? a : b; }
#endif

// Lanes moved down by kLanes / 2, kLanes / 4, … (round 0, 1, …), those at the front to the end.
#if defined(__AVX512F__)
constexpr int kHalvings = 4;
template <int kRound>
static inline Vec halved(Vec v) {
  if constexpr (kRound == 0) return _mm512_shuffle_f32x4(v, v, 0x4e);
  if constexpr (kRound == 1) return _mm512_shuffle_f32x4(v, v, 0xb1);
  if constexpr (kRound == 2) return _mm512_permute_ps(v, 0x4e);
  return _mm512_permute_ps(v, 0xb1);
}
#elif defined(__AVX__)
constexpr int kHalvings = 3;
template <int kRound>
static inline Vec halved(Vec v) {
  if constexpr (kRound == 0) return _mm256_permute2f128_ps(v, v, 1);
  if constexpr (kRound == 1) return _mm256_permute_ps(v, 0x4e);
  return _mm256_permute_ps(v, 0xb1);
}
#else
constexpr int kHalvings = 2;
template <int kRound>
static inline Vec halved(Vec v) {
  if constexpr (kRound == 0) return __builtin_shufflevector(v, v, 2, 3, 0, 1);
  return __builtin_shufflevector(v, v, 1, 0, 3, 2);
}
#endif

#if defined(RL_NEON)
static inline float sum_lanes(Vec v) { return vaddvq_f32(v); }
static inline float max_lanes(Vec v) { return vmaxnmvq_f32(v); }  // NaN may be lost
#else
template <int kRound = 0>
static inline float sum_lanes(Vec v) {
  if constexpr (kRound == kHalvings) {
    return v[0];
  } else {
    return sum_lanes<kRound + 1>(v + halved<kRound>(v));
  }
}
// NaN may be lost.
template <int kRound = 0>
static inline float max_lanes(Vec v) {
  if constexpr (kRound == kHalvings) {
    return v[0];
  } else {
    return max_lanes<kRound + 1>(max_of(v, halved<kRound>(v)));
  }
}
#endif

// Interleaves the lanes of the lower halves of a and b, and those of their upper halves.
static inline Vec interleave_low(Vec a, Vec b) {
#if defined(__AVX512F__)
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif defined(__AVX__)
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#endif
}
static inline Vec interleave_high(Vec a, Vec b) {
#if defined(__AVX512F__)
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
#elif defined(__AVX__)
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}

// Every second one of 2 * kLanes elements.
static inline Vec load_even(const float* p) {
  const Vec low = load(p);
  const Vec high = load(p + kLanes);
#if defined(__AVX512F__)
  return __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28,
                                 30);
#elif defined(__AVX__)
  return __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14);
#else
  return __builtin_shufflevector(low, high, 0, 2, 4, 6);
#endif
}

// Turns kLanes rows into columns: log2(kLanes) rounds, each a perfect shuffle of the whole square.
static inline void transpose(Vec (&rows)[kLanes]) {
#pragma GCC unroll 4
  for (int64_t round = 1; round < kLanes; round *= 2) {
    Vec next[kLanes];
#pragma GCC unroll 8
    for (int64_t i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = interleave_low(rows[i], rows[i + kLanes / 2]);
      next[2 * i + 1] = interleave_high(rows[i], rows[i + kLanes / 2]);
    }
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLanes; ++i) rows[i] = next[i];
  }
}

}  // namespace rushlight::kernels::RL_ISA
