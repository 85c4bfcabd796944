// Sums of two panels' columns as bytes, with AVX-512: narrowing vectors saturates them to the
// bounds, two rows at a time; with residuals if kAdds. Included by loops files only.
#pragma once

#if defined(__AVX512F__)

#include "rushlight/engine/loops/products/quantize.h"
#include "rushlight/kernel/loops/vec.h"

namespace rushlight::engine::RL_ISA {

template <bool kAdds>
class TwoPanels {
 public:
  explicit TwoPanels(const RequantizeColumns& c) {
    const Requantize& r = c.requantize;
    for (int64_t v = 0; v < 2; ++v) {
      start_[v] = _mm512_loadu_si512(c.start + v * 16);
      multiplier_[v] = _mm512_loadu_ps(c.multipliers + v * 16);
    }
    high_ = _mm512_set1_ps(static_cast<float>(r.high - r.zero_point));
    const Requantize& last = kAdds ? c.sum.requantize : r;
    zero_point_ = _mm512_set1_epi16(static_cast<int16_t>(last.zero_point));
    least_ = _mm512_set1_epi8(static_cast<char>(last.low));
    if constexpr (kAdds) {
      // The bounds before the zero point is added.
      const QuantizedBinary& sum = c.sum;
      low_ = _mm512_set1_epi32(r.low - r.zero_point);
      bias_ = _mm512_set1_epi32(sum.bias + r.zero_point * sum.a_multiplier);
      a_multiplier_ = _mm512_set1_epi32(sum.a_multiplier);
      b_multiplier_ = _mm512_set1_epi32(sum.b_multiplier);
      shift_ = _mm_cvtsi32_si128(sum.shift);
      most_ = _mm512_set1_epi8(static_cast<char>(last.high));
    }
  }
  // Narrows sums that include `start` to 16 bits. `residual` is the row's.
  __m512i narrow(__m512i left, __m512i right, const uint8_t* residual) const {
    left = round(left, 0);
    right = round(right, 1);
    if constexpr (kAdds) {
      left = add(left, residual);
      right = add(right, residual + 16);
    }
    return _mm512_adds_epi16(_mm512_packs_epi32(left, right), zero_point_);
  }
  // The same for sums in memory.
  __m512i row(const int32_t* sums, const uint8_t* residual) const {
    return narrow(_mm512_add_epi32(_mm512_loadu_si512(sums), start_[0]),
                  _mm512_add_epi32(_mm512_loadu_si512(sums + 16), start_[1]), residual);
  }
  // Stores two rows of 32 bytes; they may be the same row.
  void store(__m512i first, __m512i second, uint8_t* first_out, uint8_t* second_out) const {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i mixed = _mm512_max_epu8(_mm512_packus_epi16(first, second), least_);
    if constexpr (kAdds) mixed = _mm512_min_epu8(mixed, most_);
    const __m512i rows = _mm512_permutexvar_epi32(order, mixed);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(second_out), _mm512_extracti64x4_epi64(rows, 1));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(first_out), _mm512_castsi512_si256(rows));
  }

 private:
  // NaN becomes the least integer.
  __m512i round(__m512i sum, int v) const {
    const __m512 number = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), multiplier_[v]);
    return _mm512_cvtps_epi32(_mm512_min_ps(high_, number));
  }
  // Like SumVec (bytes.h), without the zero point.
  __m512i add(__m512i result, const uint8_t* residual) const {
    const __m512i a = _mm512_mullo_epi32(_mm512_max_epi32(result, low_), a_multiplier_);
    const __m512i bytes =
        _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(residual)));
    const __m512i b = _mm512_add_epi32(_mm512_mullo_epi32(bytes, b_multiplier_), bias_);
    return _mm512_sra_epi32(_mm512_add_epi32(a, b), shift_);
  }

  __m512i start_[2];
  __m512 multiplier_[2];
  __m512 high_;
  __m512i zero_point_, least_;
  __m512i low_, bias_, a_multiplier_, b_multiplier_, most_;  // if kAdds
  __m128i shift_;
};

}  // namespace rushlight::engine::RL_ISA

#endif
