// Eager computes normal variates with the logarithm, sine and cosine of S. Moshier's Cephes library
// in single precision. These loops do the same, in the same order of operations and with the same
// fused operations, so that results are equal bit for bit. Every product is either an operand of
// one explicit fma or cannot be fused by a compiler.
#include "rushlight/kernels/portable/loops/random/normal.h"

#include <cmath>
#include <cstring>

namespace rushlight::kernels::RL_ISA {
namespace {

constexpr size_t kPairs = 8;

// logf for normal numbers.
inline float log_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const bool small = (bits & 0x007fffffU) < 0x003504f3U;  // a mantissa below sqrt(2)
  const float exponent = static_cast<float>(static_cast<int32_t>(bits >> 23) - (small ? 127 : 126));
  bits = (bits & 0x007fffffU) | 0x3f000000U;
  float m;
  std::memcpy(&m, &bits, sizeof m);
  m = small ? (m - 1.0f) + m : m - 1.0f;
  float y = 7.0376836292e-2f;
  y = __builtin_fmaf(y, m, -1.1514610310e-1f);
  y = __builtin_fmaf(y, m, 1.1676998740e-1f);
  y = __builtin_fmaf(y, m, -1.2420140846e-1f);
  y = __builtin_fmaf(y, m, 1.4249322787e-1f);
  y = __builtin_fmaf(y, m, -1.6668057665e-1f);
  y = __builtin_fmaf(y, m, 2.0000714765e-1f);
  y = __builtin_fmaf(y, m, -2.4999993993e-1f);
  y = __builtin_fmaf(y, m, 3.3333331174e-1f);
  const float square = m * m;
  y = __builtin_fmaf(y * m, square, exponent * -2.12194440e-4f);
  y = __builtin_fmaf(square, -0.5f, y);
  return __builtin_fmaf(exponent, 0.693359375f, m + y);
}

// Sine and cosine of an angle from 0 to 2 pi, by its octant.
inline void sin_cos_of(float x, float* sine, float* cosine) {
  const int32_t octant = (static_cast<int32_t>(x * 1.27323954473516f) + 1) & ~1;
  const float octants = static_cast<float>(octant);
  float r = __builtin_fmaf(octants, -0.78515625f, x);
  r = __builtin_fmaf(octants, -2.4187564849853515625e-4f, r);
  r = __builtin_fmaf(octants, -3.77489497744594108e-8f, r);
  const float z = r * r;
  float c = 2.443315711809948e-5f;
  c = __builtin_fmaf(c, z, -1.388731625493765e-3f);
  c = __builtin_fmaf(c, z, 4.166664568298827e-2f);
  c = __builtin_fmaf(c * z, z, z * -0.5f) + 1.0f;
  float s = -1.9515295891e-4f;
  s = __builtin_fmaf(s, z, 8.3321608736e-3f);
  s = __builtin_fmaf(s, z, -1.6666654611e-1f);
  s = __builtin_fmaf(s * z, r, r);
  const bool swap = (octant & 2) != 0;
  const float a = swap ? c : s;
  const float b = swap ? s : c;
  *sine = (octant & 4) != 0 ? -a : a;
  *cosine = ((octant + 2) & 4) != 0 ? -b : b;
}

void fill(float* values, size_t blocks, float mean, float std) {
  constexpr float kTwoPi = 6.283185307179586f;
  for (size_t block = 0; block < blocks; ++block, values += 2 * kPairs) {
    RL_VECTORIZE
    for (size_t k = 0; k < kPairs; ++k) {
      const float radius = __builtin_sqrtf(-2.0f * log_of(1.0f - values[k]));
      float sine;
      float cosine;
      sin_cos_of(kTwoPi * values[k + kPairs], &sine, &cosine);
      values[k] = __builtin_fmaf(radius * cosine, std, mean);
      values[k + kPairs] = __builtin_fmaf(radius * sine, std, mean);
    }
  }
}

}  // namespace

const NormalLoops normal_loops = {fill};

}  // namespace rushlight::kernels::RL_ISA
