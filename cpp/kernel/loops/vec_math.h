// Elementary functions of one float without branches or table lookups, so that a loop over them is
// vectorised on every instruction set. Errors are a few units in the last place (tests hold each to
// its bound); NaN, infinities, zeros and subnormals come out as the C library has them, except that
// the sign of a zero may be lost. What of double is not in vec_double.h goes to the C library.
// Included by loops files only (see dispatch.h).
#pragma once

#include <math.h>

#include <cstdint>
#include <cstring>

#include "rushlight/kernel/loops/half.h"
#include "rushlight/kernel/loops/vec_double.h"

namespace rushlight::kernels::RL_ISA {

constexpr float kInf = __builtin_inff();
constexpr float kNaN = __builtin_nanf("");

static inline float vabs(float x) { return float_of(bits_of(x) & 0x7fffffffu); }
static inline double vabs(double x) { return fabs(x); }
static inline float with_sign_of(float magnitude, float sign) {
  return float_of((bits_of(magnitude) & 0x7fffffffu) | (bits_of(sign) & 0x80000000u));
}

// 2^n for n from -126 to 127.
static inline float exp2_int(int32_t n) { return float_of(static_cast<uint32_t>(n + 127) << 23); }

// --- rounding -----------------------------------------------------------------------------------

#if defined(RL_NEON)  // an instruction each
static inline float vround(float x) { return __builtin_roundevenf(x); }
static inline float vfloor(float x) { return floorf(x); }
static inline float vceil(float x) { return ceilf(x); }
static inline float vtrunc(float x) { return truncf(x); }
#else
// Adding and subtracting 2^23 leaves the nearest integer, ties to even; from there on every float
// is an integer already.
constexpr float kTwo23 = 8388608.0f;

static inline float vround(float x) {
  const float a = vabs(x);
  return with_sign_of(a < kTwo23 ? (a + kTwo23) - kTwo23 : a, x);
}
static inline float vfloor(float x) {
  const float r = vround(x);
  return with_sign_of(r > x ? r - 1.0f : r, x);
}
static inline float vceil(float x) {
  const float r = vround(x);
  return with_sign_of(r < x ? r + 1.0f : r, x);
}
static inline float vtrunc(float x) {
  const float a = vabs(x);
  const float r = vround(a);
  return with_sign_of(r > a ? r - 1.0f : r, x);
}
#endif
static inline double vround(double x) { return nearbyint(x); }
static inline double vfloor(double x) { return floor(x); }
static inline double vceil(double x) { return ceil(x); }
static inline double vtrunc(double x) { return trunc(x); }

// --- exponential --------------------------------------------------------------------------------

// x = n * ln 2 + r with |r| <= ln(2) / 2, for |x| < 2^15. NaN leaves any n and a NaN r.
struct Reduced {
  int32_t n;
  float r;
};

static inline Reduced reduce_ln2(float x) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: the sum's low bits are the integer
  const float shifted = x * 1.44269504088896341f + kMagic;
  const float n = shifted - kMagic;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  return {static_cast<int32_t>(bits_of(shifted) - bits_of(kMagic)), r};
}

// e^r - 1 for |r| <= ln(2) / 2.
static inline float expm1_small(float r) {
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p * (r * r) + r;
}

static inline float vexp(float x) {
  // Beyond the ends the result is 0 or infinity, which the two scalings give by themselves.
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  const Reduced e = reduce_ln2(x);
  const int32_t half = e.n >> 1;
  return (expm1_small(e.r) + 1.0f) * exp2_int(half) * exp2_int(e.n - half);
}

static inline float vexp2(float x) {
  constexpr float kMagic = 12582912.0f;  // as in reduce_ln2
  x = x > 129.0f ? 129.0f : x;
  x = x < -151.0f ? -151.0f : x;
  const float shifted = x + kMagic;
  const int32_t n = static_cast<int32_t>(bits_of(shifted) - bits_of(kMagic));
  const float r = (x - (shifted - kMagic)) * 0.693147180559945309f;
  const int32_t half = n >> 1;
  return (expm1_small(r) + 1.0f) * exp2_int(half) * exp2_int(n - half);
}

// e^x for x from -87 to 88, where one scaling is enough.
static inline float exp_normal(float x) {
  const Reduced e = reduce_ln2(x);
  return (expm1_small(e.r) + 1.0f) * exp2_int(e.n);
}

static inline float vexpm1(float x) {
  const float y = x > 89.0f ? 89.0f : x;
  const Reduced e = reduce_ln2(y < -18.0f ? -18.0f : y);
  const float scale = exp2_int(e.n - 1);  // half of 2^n, which might overflow
  return 2.0f * (scale * expm1_small(e.r) + (scale - 0.5f));
}

// --- logarithm ----------------------------------------------------------------------------------

// x = 2^n * (1 + f) with 1 + f from sqrt(1/2) to sqrt(2), for finite x > 0.
struct Mantissa {
  float n;
  float f;
};

static inline Mantissa split(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const uint32_t bits = bits_of(tiny ? x * 33554432.0f : x);
  constexpr uint32_t kSqrtHalf = 0x3f3504f3;
  const int32_t n = static_cast<int32_t>(bits - kSqrtHalf) >> 23;
  const float m = float_of(bits - (static_cast<uint32_t>(n) << 23));
  return {static_cast<float>(n) - (tiny ? 25.0f : 0.0f), m - 1.0f};
}

// ln(1 + f) minus its first terms f - f^2 / 2.
static inline float log1p_tail(float f) {
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  return p * f * (f * f);
}

// Puts in what the formulas for finite positive x do not give.
static inline float log_special(float x, float result) {
  result = x == kInf ? kInf : result;
  result = x == 0.0f ? -kInf : result;
  return x >= 0.0f ? result : kNaN;
}

static inline float vlog(float x) {
  const Mantissa m = split(x);
  const float low = log1p_tail(m.f) + m.n * -2.12194440e-4f;
  return log_special(x, ((low - 0.5f * m.f * m.f) + m.f) + m.n * 0.693359375f);
}

static inline float vlog2(float x) {
  const Mantissa m = split(x);
  const float ln = (log1p_tail(m.f) - 0.5f * m.f * m.f) + m.f;
  return log_special(x, ln * 1.44269504088896341f + m.n);
}

static inline float vlog10(float x) {
  const Mantissa m = split(x);
  const float ln = (log1p_tail(m.f) - 0.5f * m.f * m.f) + m.f;
  const float low = m.n * 4.6050389811952137e-6f + ln * 0.434294481903251828f;
  return log_special(x, low + m.n * 0.30102539062f);
}

static inline float vlog1p(float x) {
  const float u = 1.0f + x;
  // What the addition lost, seen through the slope of the logarithm.
  const float lost = (x - (u - 1.0f)) / u;
  const float result = vlog(u) + (vabs(u) > 0.0f && u < kInf ? lost : 0.0f);
  return x == 0.0f ? x : result;
}

static inline double vlog2(double x) { return log2(x); }
static inline double vlog10(double x) { return log10(x); }

// --- hyperbolic and their kin -------------------------------------------------------------------

static inline float vsigmoid(float x) { return 1.0f / (1.0f + vexp(-x)); }

static inline float vtanh(float x) {
  const float a = vabs(x);
  const float t = vexpm1(2.0f * (a > 10.0f ? 10.0f : a));
  return with_sign_of(t / (t + 2.0f), x);
}

static inline float vsinh(float x) {
  const float a = vabs(x);
  // expm1 of a smaller number and one more doubling, where e^a itself would overflow.
  const float t = vexpm1(a > 88.0f ? a - 0.693147181f : a);
  const float plain = 0.5f * (t + t / (t + 1.0f));
  return with_sign_of(a > 88.0f ? t : plain, x);
}
static inline float vcosh(float x) {
  const float a = vabs(x);
  const float t = vexp(a > 88.0f ? a - 0.693147181f : a);
  return a > 88.0f ? t : 0.5f * t + 0.5f / t;
}
static inline float vasinh(float x) {
  const float a = vabs(x);
  const float big = vlog(a) + 0.693147181f;
  const float square = a * a;
  const float small = vlog1p(a + square / (1.0f + sqrtf(1.0f + square)));
  return with_sign_of(a > 1e9f ? big : small, x);
}
static inline float vacosh(float x) {
  const float t = x - 1.0f;
  const float big = vlog(x) + 0.693147181f;
  return x > 1e9f ? big : vlog1p(t + sqrtf(2.0f * t + t * t));
}
static inline float vatanh(float x) {
  const float a = vabs(x);
  return with_sign_of(0.5f * vlog1p(2.0f * a / (1.0f - a)), x) + (a > 1.0f ? kNaN : 0.0f);
}
static inline double vasinh(double x) { return asinh(x); }
static inline double vacosh(double x) { return acosh(x); }

// --- error function -----------------------------------------------------------------------------

static inline float verf(float x) {
  const float t = vabs(x);
  const float s = x * x;
  // Far from 0: 1 - e^p(t). Beyond 4 it is 1 in float32.
  const float u = t > 4.0f ? 4.0f : t;
  const float v = u * u;
  float p = -1.72853470e-5f * u + 3.83197126e-4f;
  p = p * v + (-3.88396438e-3f * u + 2.42546219e-2f);
  p = p * u - 1.06777877e-1f;
  p = p * u - 6.34846687e-1f;
  p = p * u - 1.28717512e-1f;
  p = p * u - u;
  const float far = with_sign_of(1.0f - exp_normal(p), x);
  float q = -5.96761703e-4f;
  q = q * s + 4.99119423e-3f;
  q = q * s - 2.67681349e-2f;
  q = q * s + 1.12819925e-1f;
  q = q * s - 3.76125336e-1f;
  q = q * s + 1.28379166e-1f;
  const float near = q * x + x;
  const float result = t > 0.927734375f ? far : near;
  return x != x ? x : result;
}
static inline double verf(double x) { return erf(x); }
}  // namespace rushlight::kernels::RL_ISA
