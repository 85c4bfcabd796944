// float16 and bfloat16 as bits: branch-free conversions that vectorise on every instruction set.
// In a loops file (see dispatch.h) they are in its namespace, elsewhere in `plain`; having internal
// linkage, those of one file are no other file's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__F16C__)
#include <immintrin.h>
#elif defined(RL_NEON)
#include <arm_neon.h>
#endif

#if defined(RL_ISA)
#define RL_HALF_NAMESPACE RL_ISA
#else
#define RL_HALF_NAMESPACE plain
#endif

namespace rushlight::kernels::RL_HALF_NAMESPACE {

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

static inline float float_of(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}
static inline uint32_t bits_of(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof bits);
  return bits;
}

static inline float widen(BFloat b) { return float_of(static_cast<uint32_t>(b.bits) << 16); }

static inline BFloat narrow_bfloat(float f) {
  const uint32_t bits = bits_of(f);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return {static_cast<uint16_t>(f != f ? 0x7fc0u : rounded)};
}

static inline float widen(Half h) {
  const uint32_t magnitude = static_cast<uint32_t>(h.bits & 0x7fffu) << 13;
  // Multiplying by 2^112 moves the exponent to float's bias, subnormals included.
  const uint32_t finite = bits_of(float_of(magnitude) * 0x1p112f);
  const uint32_t special = magnitude | 0x7f800000u;  // infinity and NaN
  const uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000u) << 16;
  return float_of((magnitude >= 0x0f800000u ? special : finite) | sign);
}

static inline Half narrow_half(float f) {
  const uint32_t bits = bits_of(f);
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Adding a number whose last place is the wanted one lets the addition round to nearest even;
  // subnormal results all have the last place 2^-24.
  uint32_t exponent = magnitude & 0x7f800000u;
  exponent = exponent < 0x38800000u ? 0x38800000u : exponent;
  const float round = float_of(exponent + (13u << 23));
  const uint32_t sum = bits_of(float_of(magnitude) + round) - bits_of(round);
  const uint32_t base = (exponent - 0x38800000u) >> 13;
  const uint32_t finite = base + sum;
  const uint32_t result = magnitude > 0x7f800000u    ? 0x7e00u
                          : magnitude >= 0x477ff000u ? 0x7c00u
                                                     : finite;
  return {static_cast<uint16_t>(result | ((bits >> 16) & 0x8000u))};
}

// Many elements at once.
static inline void widen_all(const BFloat* x, float* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = widen(x[i]);
}
static inline void widen_all(const Half* x, float* y, size_t n) {
  size_t i = 0;
  // The processor's own conversions, which the loop below is not compiled to.
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    _mm512_storeu_ps(y + i, _mm512_cvtph_ps(halves));
  }
#endif
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(halves));
  }
#elif defined(RL_NEON)
  for (; i + 4 <= n; i += 4) {
    const uint16x4_t halves = vld1_u16(&x[i].bits);
    vst1q_f32(y + i, vcvt_f32_f16(vreinterpret_f16_u16(halves)));
  }
#endif
  for (; i < n; ++i) y[i] = widen(x[i]);
}

}  // namespace rushlight::kernels::RL_HALF_NAMESPACE

#undef RL_HALF_NAMESPACE
