// Vectors of int32 beside vec.h: sums that wrap around, and vectors whose lanes are bytes in memory
// (vectors of bytes: bytes.h). Included by loops files only.
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

// Loads kLanes bytes.
using ByteVec = uint8_t __attribute__((vector_size(kLanes)));
using ByteVecMemory = uint8_t __attribute__((vector_size(kLanes), aligned(1), may_alias));

// Overflow wraps around: a file's constants may be any number.
using UnsignedVec = uint32_t __attribute__((vector_size(kLanes * 4)));
static inline IntVec wrap_add(IntVec a, IntVec b) {
  return reinterpret_cast<IntVec>(reinterpret_cast<UnsignedVec>(a) +
                                  reinterpret_cast<UnsignedVec>(b));
}
static inline IntVec wrap_multiply(IntVec a, IntVec b) {
  return reinterpret_cast<IntVec>(reinterpret_cast<UnsignedVec>(a) *
                                  reinterpret_cast<UnsignedVec>(b));
}

static inline Vec to_floats(IntVec v) { return __builtin_convertvector(v, Vec); }

// Compilers convert vectors shorter than registers one element after the other.
static inline IntVec load_from_bytes(const uint8_t* p) {
#if defined(__AVX512F__)
  return reinterpret_cast<IntVec>(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#elif defined(__AVX2__)
  return reinterpret_cast<IntVec>(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#elif defined(__SSE2__) && !defined(__AVX__)
  int32_t four;
  std::memcpy(&four, p, sizeof(four));
  const __m128i halves = _mm_unpacklo_epi8(_mm_cvtsi32_si128(four), _mm_setzero_si128());
  return reinterpret_cast<IntVec>(_mm_unpacklo_epi16(halves, _mm_setzero_si128()));
#elif defined(RL_NEON)
  uint32_t four;
  std::memcpy(&four, p, sizeof(four));
  const uint16x8_t halves = vmovl_u8(vcreate_u8(four));
  return reinterpret_cast<IntVec>(vmovl_u16(vget_low_u16(halves)));
#else
  return __builtin_convertvector(*reinterpret_cast<const ByteVecMemory*>(p), IntVec);
#endif
}
// For integers from 0 to 255.
static inline void store_as_bytes(uint8_t* p, IntVec v) {
#if defined(__AVX512F__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(v)));
#elif defined(__AVX2__)
  const auto whole = reinterpret_cast<__m256i>(v);
  const __m128i halves =
      _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(halves, halves));
#elif defined(__SSE2__) && !defined(__AVX__)
  const auto whole = reinterpret_cast<__m128i>(v);
  const __m128i halves = _mm_packs_epi32(whole, whole);
  const int32_t four = _mm_cvtsi128_si32(_mm_packus_epi16(halves, halves));
  std::memcpy(p, &four, sizeof(four));
#elif defined(RL_NEON)
  const uint16x4_t halves = vmovn_u32(reinterpret_cast<uint32x4_t>(v));
  const uint8x8_t bytes = vmovn_u16(vcombine_u16(halves, halves));
  const uint32_t four = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
  std::memcpy(p, &four, sizeof(four));
#else
  *reinterpret_cast<ByteVecMemory*>(p) = __builtin_convertvector(v, ByteVec);
#endif
}
#if defined(__AVX512BW__)
// Loads the first n of 16 bytes.
static inline __mmask16 first_bytes(int64_t n) {
  return static_cast<__mmask16>(n > 0 ? (1u << n) - 1 : 0);
}
#endif
// Stores the first n lanes; n may be 0 or less, or more than a vector has.
static inline IntVec load_some_from_bytes(const uint8_t* p, int64_t n) {
  if (n >= kLanes) return load_from_bytes(p);
#if defined(__AVX512BW__)
  return reinterpret_cast<IntVec>(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first_bytes(n), p)));
#else
  uint8_t bytes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) bytes[i] = p[i];
  return load_from_bytes(bytes);
#endif
}
static inline void store_some_as_bytes(uint8_t* p, IntVec v, int64_t n) {
  if (n >= kLanes) return store_as_bytes(p, v);
#if defined(__AVX512BW__)
  _mm_mask_storeu_epi8(p, first_bytes(n), _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(v)));
#else
  uint8_t bytes[kLanes] = {};
  store_as_bytes(bytes, v);
  for (int64_t i = 0; i < n; ++i) p[i] = bytes[i];
#endif
}

}  // namespace rushlight::engine::RL_ISA
