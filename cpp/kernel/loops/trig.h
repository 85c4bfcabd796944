// Trigonometric functions and powers of one float, in the manner of vec_math.h. Arguments are
// reduced, and powers computed, in double, which vectorises as well.
#pragma once

#include "rushlight/kernel/loops/vec_math.h"

namespace rushlight::kernels::RL_ISA {

// --- sine, cosine, tangent ----------------------------------------------------------------------

// Up to here the quotient by pi/2 has so few bits that its product with the first 25 bits of pi/2
// is exact in double; beyond, sin, cos and tan are the C library's.
constexpr float kTrigLimit = 4e8f;

// x = n * pi/2 + r with |r| <= pi/4; only the last bits of n matter.
struct Quadrant {
  int32_t n;
  float r;
};

static inline Quadrant reduce_half_pi(float x) {
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52
  const double wide = static_cast<double>(x);
  const double shifted = wide * 0.63661977236758134308 + kMagic;
  const double n = shifted - kMagic;
  const double r = (wide - n * 1.57079631090164184570) - n * 1.58932547735281966916e-08;
  return {static_cast<int32_t>(static_cast<uint32_t>(bits_of(shifted))), static_cast<float>(r)};
}

static inline float sin_small(float r) {
  const float s = r * r;
  const float p = (-1.9515295891e-4f * s + 8.3321608736e-3f) * s - 1.6666654611e-1f;
  return p * s * r + r;
}
static inline float cos_small(float r) {
  const float s = r * r;
  const float p = (2.443315711809948e-5f * s - 1.388731625493765e-3f) * s + 4.166664568298827e-2f;
  return p * s * s + (1.0f - 0.5f * s);
}

static inline float sin_of(Quadrant q) {
  const float value = (q.n & 1) != 0 ? cos_small(q.r) : sin_small(q.r);
  return float_of(bits_of(value) ^ (static_cast<uint32_t>(q.n & 2) << 30));
}

static inline float vsin(float x) { return sin_of(reduce_half_pi(x)); }
static inline float vcos(float x) {
  Quadrant q = reduce_half_pi(x);
  q.n = static_cast<int32_t>(static_cast<uint32_t>(q.n) + 1u);
  return sin_of(q);
}
static inline float vtan(float x) {
  const Quadrant q = reduce_half_pi(x);
  const float s = sin_small(q.r);
  const float c = cos_small(q.r);
  return (q.n & 1) != 0 ? -c / s : s / c;
}
static inline double vsin(double x) { return sin(x); }
static inline double vcos(double x) { return cos(x); }
static inline double vtan(double x) { return tan(x); }

// --- inverse functions --------------------------------------------------------------------------

constexpr float kHalfPi = 1.57079632679489661923f;
constexpr float kPi = 3.14159265358979323846f;

// atan of a from 0 to infinity.
static inline float atan_positive(float a) {
  const bool large = a > 2.414213562373095f;
  const bool middle = a > 0.4142135623730950f;
  const float top = large ? -1.0f : middle ? a - 1.0f : a;
  const float bottom = large ? a : middle ? a + 1.0f : 1.0f;
  const float base = large ? kHalfPi : middle ? 0.78539816339744830962f : 0.0f;
  const float t = top / bottom;
  const float s = t * t;
  float p = 8.05374449538e-2f;
  p = p * s - 1.38776856032e-1f;
  p = p * s + 1.99777106478e-1f;
  p = p * s - 3.33329491539e-1f;
  return base + (p * s * t + t);
}

static inline float vatan(float x) { return with_sign_of(atan_positive(vabs(x)), x); }

static inline float vatan2(float y, float x) {
  const float ay = vabs(y);
  const float ax = vabs(x);
  const bool steep = ay > ax;
  // The quotient is at most 1; two infinities count as equal, two zeros as 0.
  const float top = steep ? ax : ay;
  const float bottom = steep ? ay : ax;
  float t = top / bottom;
  t = bottom == 0.0f ? 0.0f : t;
  t = top == kInf ? 1.0f : t;
  float angle = atan_positive(t);
  angle = steep ? kHalfPi - angle : angle;
  angle = bits_of(x) >> 31 != 0 ? kPi - angle : angle;
  const float result = with_sign_of(angle, y);
  return x != x || y != y ? kNaN : result;
}

// asin of a from 0 to 1/2.
static inline float asin_small(float a) {
  const float s = a * a;
  float p = 4.2163199048e-2f;
  p = p * s + 2.4181311049e-2f;
  p = p * s + 4.5470025998e-2f;
  p = p * s + 7.4953002686e-2f;
  p = p * s + 1.6666752422e-1f;
  return p * s * a + a;
}

static inline float vasin(float x) {
  const float a = vabs(x);
  const bool upper = a > 0.5f;
  const float t = asin_small(upper ? sqrtf(0.5f * (1.0f - a)) : a);
  return with_sign_of(upper ? kHalfPi - 2.0f * t : t, x);
}
static inline float vacos(float x) {
  const float a = vabs(x);
  const bool upper = a > 0.5f;
  const float t = asin_small(upper ? sqrtf(0.5f * (1.0f - a)) : a);
  const float from_end = x < 0.0f ? kPi - 2.0f * t : 2.0f * t;
  return upper ? from_end : kHalfPi - with_sign_of(t, x);
}
static inline double vatan(double x) { return atan(x); }
static inline double vasin(double x) { return vatan2(x, sqrt((1.0 - x) * (1.0 + x))); }
static inline double vacos(double x) { return vatan2(sqrt((1.0 - x) * (1.0 + x)), x); }

// --- power --------------------------------------------------------------------------------------

// log2 of a positive finite float, good to some 2^-40.
static inline double log2_wide(float x) {
  const Mantissa m = split(x);
  const double f = static_cast<double>(m.f);
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  p = p * z + 1.0;
  return static_cast<double>(m.n) + p * s * 2.88539008177792681472;
}

// 2^x, good to some 2^-35 for x from -1000 to 1000.
static inline double exp2_wide(double x) {
  constexpr double kMagic = 6755399441055744.0;
  const double shifted = x + kMagic;
  const double r = (x - (shifted - kMagic)) * 0.69314718055994530942;
  double p = 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  return p * double_of((bits_of(shifted) + 1023u) << 52);
}

static inline float vpow(float x, float y) {
  const float a = vabs(x);
  double exponent = static_cast<double>(y) * log2_wide(a);
  const double infinity = static_cast<double>(kInf);
  const double y_sign = y > 0.0f ? infinity : -infinity;
  exponent = a == 0.0f ? -y_sign : exponent;
  exponent = a == kInf ? y_sign : exponent;
  exponent = exponent > 1000.0 ? 1000.0 : exponent;
  exponent = exponent < -1000.0 ? -1000.0 : exponent;
  float result = static_cast<float>(exp2_wide(exponent));
  // A negative base takes integers only; an odd one keeps the sign.
  const float whole = vtrunc(y);
  const bool integer = whole == y;
  const bool odd = integer && vtrunc(0.5f * y) * 2.0f != y;
  const bool negative = bits_of(x) >> 31 != 0;
  result = negative && odd ? -result : result;
  result = x < 0.0f && !integer && a != kInf ? kNaN : result;
  result = a == 1.0f && vabs(y) == kInf ? 1.0f : result;
  result = x != x || y != y ? kNaN : result;
  return x == 1.0f || y == 0.0f ? 1.0f : result;
}
static inline double vpow(double x, double y) { return pow(x, y); }

}  // namespace rushlight::kernels::RL_ISA
