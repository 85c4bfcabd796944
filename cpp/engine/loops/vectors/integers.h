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

// Compilers compare and select instead.
static inline IntVec max_of_ints(IntVec a, IntVec b) {
#if defined(__AVX512F__)
  return reinterpret_cast<IntVec>(
      _mm512_max_epi32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<IntVec>(
      _mm256_max_epi32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(RL_NEON)
  return vmaxq_s32(a, b);
#else
  return a > b ? a : b;
#endif
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
// Stores the lanes of a, then those of b, as 16 bits; of each four, in the order 0, 2, 1, 3, in
// which split_quads() (pairs.h) has four bytes.
static inline void store_as_split_shorts(int16_t* p, IntVec a, IntVec b) {
#if defined(__AVX512BW__)
  const __m512i order = _mm512_setr_epi64(
      0x0006000200040000, 0x000e000a000c0008, 0x0016001200140010, 0x001e001a001c0018,
      0x0026002200240020, 0x002e002a002c0028, 0x0036003200340030, 0x003e003a003c0038);
  _mm512_storeu_si512(p, _mm512_permutex2var_epi16(reinterpret_cast<__m512i>(a), order,
                                                   reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  const __m256i both =
      _mm256_packs_epi32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b));
  const __m256i whole = _mm256_permute4x64_epi64(both, _MM_SHUFFLE(3, 1, 2, 0));
  const __m256i low = _mm256_shufflelo_epi16(whole, _MM_SHUFFLE(3, 1, 2, 0));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm256_shufflehi_epi16(low, _MM_SHUFFLE(3, 1, 2, 0)));
#else
  static_assert(kLanes % 4 == 0, "fours do not cross vectors");
  for (int64_t i = 0; i < kLanes; ++i) {
    const int64_t from = (i & ~int64_t{3}) + (i & 1) * 2 + (i & 2) / 2;
    p[i] = static_cast<int16_t>(a[from]);
    p[kLanes + i] = static_cast<int16_t>(b[from]);
  }
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
