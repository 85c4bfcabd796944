// What the engine's loops need beside vec.h: loads and stores of a part of a vector, and clamping.
// Included by loops files only.
#pragma once

#include "rushlight/engine/types/panels.h"
#include "rushlight/kernel/loops/half.h"
#include "rushlight/kernel/loops/vec.h"

namespace rushlight::engine::RL_ISA {

using ::rushlight::kernels::RL_ISA::kLanes;
using ::rushlight::kernels::RL_ISA::Vec;

// Loads the first n lanes, at most a whole vector; the others are zero.
static inline Vec load_some(const float* p, int64_t n) {
  using namespace ::rushlight::kernels::RL_ISA;
  return n >= kLanes ? load(p) : load_first(p, n);
}

// Stores the first n lanes; n may be 0 or less, or more than a vector has.
static inline void store_some(float* p, Vec v, int64_t n) {
  using namespace ::rushlight::kernels::RL_ISA;
  if (n >= kLanes) {
    store(p, v);
  } else if (n > 0) {
    store_first(p, v, n);
  }
}

// Loads a vector of weights as float32.
static inline Vec load_weights(const float* p) { return ::rushlight::kernels::RL_ISA::load(p); }
static inline Vec load_weights(const uint16_t* p) {
  using namespace ::rushlight::kernels::RL_ISA;
#if defined(__AVX512F__)
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
#elif defined(__AVX2__)
  // Compilers convert vectors shorter than registers one element after the other.
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
#else
  using Halves = uint16_t __attribute__((vector_size(kLanes * 2), aligned(2), may_alias));
  using Wide = uint32_t __attribute__((vector_size(kLanes * 4)));
  const Wide wide = __builtin_convertvector(*reinterpret_cast<const Halves*>(p), Wide) << 16;
  return reinterpret_cast<Vec>(wide);
#endif
}
static inline Vec load_weights(const ::rushlight::kernels::RL_ISA::Half* p) {
  using namespace ::rushlight::kernels::RL_ISA;
#if defined(__AVX512F__)
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(__F16C__)
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
  alignas(16) float wide[kLanes];
  widen_all(p, wide, kLanes);
  return load(wide);
#endif
}

// Loads a vector of scales of integers, from element `at` on.
static inline Vec load_scales(const void* scales, ScaleType type, int64_t at) {
  if (type == ScaleType::BFloat16) return load_weights(static_cast<const uint16_t*>(scales) + at);
  if (type == ScaleType::Float32) return load_weights(static_cast<const float*>(scales) + at);
  return load_weights(static_cast<const ::rushlight::kernels::RL_ISA::Half*>(scales) + at);
}

// Keeps a vector that was loaded in a register, where the compiler would read it from memory with
// each use.
static inline void keep(Vec& v) {
#if defined(__x86_64__)
  asm("" : "+v"(v));
#elif defined(__aarch64__)
  asm("" : "+w"(v));
#else
  (void)v;
#endif
}

// NaN stays NaN.
static inline Vec clamp(Vec v, Vec low, Vec high) {
#if defined(RL_NEON)
  return vminq_f32(vmaxq_f32(v, low), high);
#else
  v = low > v ? low : v;
  return high < v ? high : v;
#endif
}

}  // namespace rushlight::engine::RL_ISA
