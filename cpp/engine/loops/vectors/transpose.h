// Interleaves the bytes of four rows. Included by loops files only.
#pragma once

#include "rushlight/kernel/loops/vec.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace rushlight::engine::RL_ISA {

// Sixteen bytes of each of a, b, c and d, interleaved.
static inline void interleave_sixteen(const uint8_t* a, const uint8_t* b, const uint8_t* c,
                                      const uint8_t* d, uint8_t* out) {
#if defined(__SSE2__)
  const auto load = [](const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  };
  const auto store = [&](int i, __m128i v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out) + i, v);
  };
  const __m128i low[] = {_mm_unpacklo_epi8(load(a), load(b)), _mm_unpacklo_epi8(load(c), load(d))};
  const __m128i high[] = {_mm_unpackhi_epi8(load(a), load(b)), _mm_unpackhi_epi8(load(c), load(d))};
  store(0, _mm_unpacklo_epi16(low[0], low[1]));
  store(1, _mm_unpackhi_epi16(low[0], low[1]));
  store(2, _mm_unpacklo_epi16(high[0], high[1]));
  store(3, _mm_unpackhi_epi16(high[0], high[1]));
#elif defined(RL_NEON)
  vst4q_u8(out, {{vld1q_u8(a), vld1q_u8(b), vld1q_u8(c), vld1q_u8(d)}});
#else
  for (int64_t i = 0; i < 16; ++i) {
    out[4 * i] = a[i];
    out[4 * i + 1] = b[i];
    out[4 * i + 2] = c[i];
    out[4 * i + 3] = d[i];
  }
#endif
}

}  // namespace rushlight::engine::RL_ISA
