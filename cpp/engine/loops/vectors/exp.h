// Exponentials of vectors for softmax, whose arguments are at most 0 because the maximum was
// subtracted. Errors are below 2 units in the last place; results below 2^-125 may be 0. NaN stays
// NaN. Included by loops files only (see dispatch.h).
#pragma once

#include "rushlight/kernel/loops/vec.h"

namespace rushlight::engine::RL_ISA {
using namespace ::rushlight::kernels::RL_ISA;

// The nearest integer n, ties to even, for |x| < 2^22.
static inline Vec nearest(Vec x) {
#if defined(__AVX512F__)
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT);
#elif defined(RL_NEON)
  return vrndnq_f32(x);
#else
  const Vec magic = splat(12582912.0f);  // 1.5 * 2^23: adding it leaves no bits for a fraction
  return (x + magic) - magic;
#endif
}

// p * 2^n for integers n from -150 to 0.
static inline Vec scale_by_exp2(Vec p, Vec n) {
#if defined(__AVX512F__)
  return _mm512_scalef_ps(p, n);
#else
  using Bits = VectorOf<uint32_t>::Type;
  const Bits exponent = reinterpret_cast<Bits>(__builtin_convertvector(n, IntVec)) << 23;
  const Vec scaled = reinterpret_cast<Vec>(reinterpret_cast<Bits>(p) + exponent);
  const Vec zero = {};
  const Vec kept = n > splat(-126.0f) ? scaled : zero;
  return n != n ? n : kept;
#endif
}

// 2^x: minimax in x - n from -1/2 to 1/2, relative error 7.5e-8 before rounding.
static inline Vec exp2_nonpositive(Vec x) {
  x = max_of(splat(-150.0f), x);
  const Vec n = nearest(x);
  const Vec f = x - n;
  Vec p = splat(1.32765e-3f);
  p = p * f + splat(9.67554e-3f);
  p = p * f + splat(5.550713e-2f);
  p = p * f + splat(2.402212e-1f);
  p = p * f + splat(6.9314697e-1f);
  p = p * f + splat(1.0f);
  return scale_by_exp2(p, n);
}

// e^x, with the remainder of ln 2 in two parts.
static inline Vec exp_nonpositive(Vec x) {
  x = max_of(splat(-104.0f), x);
  const Vec n = nearest(x * 1.44269504088896341f);
  const Vec r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  Vec p = splat(1.38437e-3f);
  p = p * r + splat(8.37416e-3f);
  p = p * r + splat(4.166800e-2f);
  p = p * r + splat(1.6666431e-1f);
  p = p * r + splat(4.9999994e-1f);
  p = p * r + splat(1.0f);
  p = p * r + splat(1.0f);
  return scale_by_exp2(p, n);
}

}  // namespace rushlight::engine::RL_ISA
