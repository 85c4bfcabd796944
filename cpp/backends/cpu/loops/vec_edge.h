// What the loops of this backend need beside vec.h: vectors of which only a part is stored, and
// clamping. Included by loops files only.
#pragma once

#if defined(__AVX512F__) || defined(__AVX__)
#include <immintrin.h>
#endif

#include "rushlight/kernel/loops/vec.h"

namespace rushlight::cpu::RL_ISA {

using ::rushlight::kernels::RL_ISA::kLanes;
using ::rushlight::kernels::RL_ISA::Vec;

// The first n lanes to memory; n may be 0 or less, or more than there are.
static inline void store_first(float* p, Vec v, int64_t n) {
  if (n >= kLanes) {
    ::rushlight::kernels::RL_ISA::store(p, v);
    return;
  }
  if (n <= 0) return;
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1u), v);
#else
  for (int64_t i = 0; i < n; ++i) p[i] = v[i];
#endif
}

// The first n lanes from memory, n < kLanes, the others zero.
static inline Vec load_part(const float* p, int64_t n) {
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1u), p);
#else
  return ::rushlight::kernels::RL_ISA::load_first(p, n);
#endif
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
  v = low > v ? low : v;
  return high < v ? high : v;
}

}  // namespace rushlight::cpu::RL_ISA
