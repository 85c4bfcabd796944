// Elementary functions of one double without branches or table lookups, so that a loop over them is
// vectorised, as vec_math.h has them of float. Reductions and polynomials are those of Sun's fdlibm
// (1993); errors are a few units in the last place. Included by vec_math.h only.
#pragma once

#include <math.h>

#include <cstdint>
#include <cstring>

namespace rushlight::kernels::RL_ISA {

static inline uint64_t bits_of(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline double double_of(uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

constexpr double kDoubleInf = __builtin_inf();
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;

static inline double with_sign_of(double magnitude, double sign) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  return double_of((bits_of(magnitude) & ~kSign) | (bits_of(sign) & kSign));
}

// 2^n for n from -1022 to 1023.
static inline double double_exp2_int(int32_t n) {
  return double_of(static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52);
}

// x = n * ln 2 + r with |r| <= ln(2) / 2, for |x| < 2^20. NaN leaves any n and a NaN r.
struct DoubleReduced {
  int32_t n;
  double r;
};

static inline DoubleReduced reduce_ln2(double x) {
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52: the sum's low bits are the integer
  const double shifted = x * 1.44269504088896338700 + kMagic;
  const double n = shifted - kMagic;
  return {static_cast<int32_t>(static_cast<uint32_t>(bits_of(shifted))),
          (x - n * kLn2High) - n * kLn2Low};
}

// e^r - 1 for |r| <= ln(2) / 2: the first terms of the series.
static inline double expm1_small(double r) {
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  return p * (r * r) + r;
}

static inline double vexp(double x) {
  // Beyond the ends the result is 0 or infinity, which the two scalings give by themselves.
  x = x > 710.0 ? 710.0 : x;
  x = x < -746.0 ? -746.0 : x;
  const DoubleReduced e = reduce_ln2(x);
  const int32_t half = e.n >> 1;
  return (expm1_small(e.r) + 1.0) * double_exp2_int(half) * double_exp2_int(e.n - half);
}

static inline double vexp2(double x) {
  constexpr double kMagic = 6755399441055744.0;  // as in reduce_ln2
  x = x > 1025.0 ? 1025.0 : x;
  x = x < -1076.0 ? -1076.0 : x;
  const double shifted = x + kMagic;
  const int32_t n = static_cast<int32_t>(static_cast<uint32_t>(bits_of(shifted)));
  const double r = (x - (shifted - kMagic)) * 0.693147180559945309417;
  const int32_t half = n >> 1;
  return (expm1_small(r) + 1.0) * double_exp2_int(half) * double_exp2_int(n - half);
}

static inline double vexpm1(double x) {
  const double y = x > 710.0 ? 710.0 : x;
  const DoubleReduced e = reduce_ln2(y < -40.0 ? -40.0 : y);
  const double scale = double_exp2_int(e.n - 1);  // half of 2^n, which might overflow
  return 2.0 * (scale * expm1_small(e.r) + (scale - 0.5));
}

static inline double vlog(double x) {
  // x = 2^n * (1 + f) with 1 + f from sqrt(1/2) to sqrt(2).
  const bool tiny = x < 2.2250738585072014e-308;
  const uint64_t bits = bits_of(tiny ? x * 18014398509481984.0 : x);
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  const int32_t n = static_cast<int32_t>(static_cast<uint32_t>((bits - kSqrtHalf) >> 32)) >> 20;
  const double f = double_of(bits - (static_cast<uint64_t>(static_cast<int64_t>(n)) << 52)) - 1.0;
  const double k = static_cast<double>(n) - (tiny ? 54.0 : 0.0);
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = 1.479819860511658591e-01;
  p = p * z + 1.531383769920937332e-01;
  p = p * z + 1.818357216161805012e-01;
  p = p * z + 2.222219843214978396e-01;
  p = p * z + 2.857142874366239149e-01;
  p = p * z + 3.999999999940941908e-01;
  p = p * z + 6.666666666666735130e-01;
  const double square = 0.5 * f * f;
  double result = k * kLn2High - ((square - (s * (square + p * z) + k * kLn2Low)) - f);
  // Corrects the result for numbers that are not finite and positive.
  result = x == kDoubleInf ? kDoubleInf : result;
  result = x == 0.0 ? -kDoubleInf : result;
  return x >= 0.0 ? result : __builtin_nan("");
}

static inline double vlog1p(double x) {
  const double u = 1.0 + x;
  // What the addition lost, seen through the slope of the logarithm.
  const double lost = (x - (u - 1.0)) / u;
  const double result = vlog(u) + (fabs(u) > 0.0 && u < kDoubleInf ? lost : 0.0);
  return x == 0.0 ? x : result;
}

static inline double vsigmoid(double x) { return 1.0 / (1.0 + vexp(-x)); }

static inline double vtanh(double x) {
  const double a = fabs(x);
  const double t = vexpm1(2.0 * (a > 20.0 ? 20.0 : a));
  return with_sign_of(t / (t + 2.0), x);
}

static inline double vsinh(double x) {
  const double a = fabs(x);
  // expm1 of a smaller number and one more doubling, where e^a itself would overflow.
  const double t = vexpm1(a > 709.0 ? a - 0.69314718055994530942 : a);
  const double plain = 0.5 * (t + t / (t + 1.0));
  return with_sign_of(a > 709.0 ? t : plain, x);
}

static inline double vcosh(double x) {
  const double a = fabs(x);
  const double t = vexp(a > 709.0 ? a - 0.69314718055994530942 : a);
  return a > 709.0 ? t : 0.5 * t + 0.5 / t;
}

static inline double vatanh(double x) {
  const double a = fabs(x);
  const double result = 0.5 * vlog1p(2.0 * a / (1.0 - a));
  return with_sign_of(result, x) + (a > 1.0 ? __builtin_nan("") : 0.0);
}

// The arc tangent of t from 0 to 1.
static inline double atan_unit(double t) {
  const bool upper = t > 0.41421356237309504880;
  const double u = upper ? (t - 1.0) / (t + 1.0) : t;
  const double z = u * u;
  double p = 1.62858201153657823623e-02;
  p = p * z - 3.65315727442169155270e-02;
  p = p * z + 4.97687799461593236017e-02;
  p = p * z - 5.83357013379057348645e-02;
  p = p * z + 6.66107313738753120669e-02;
  p = p * z - 7.69187620504482999495e-02;
  p = p * z + 9.09088713343650656196e-02;
  p = p * z - 1.11111104054623557880e-01;
  p = p * z + 1.42857142725034663711e-01;
  p = p * z - 1.99999999998764832476e-01;
  p = p * z + 3.33333333333329318027e-01;
  const double near = u - u * (z * p);
  return upper ? 0.78539816339744830962 + near : near;
}

static inline double vatan2(double y, double x) {
  const double ay = fabs(y);
  const double ax = fabs(x);
  const double great = ay > ax ? ay : ax;
  const double small = ay > ax ? ax : ay;
  const double ratio = small / (great == 0.0 ? 1.0 : great);
  double a = atan_unit(small == kDoubleInf ? 1.0 : ratio);
  a = ay > ax ? (1.57079632679489661923 - a) + 6.123233995736766e-17 : a;
  a = bits_of(x) >> 63 != 0 ? (3.14159265358979323846 - a) + 1.2246467991473532e-16 : a;
  return x != x || y != y ? x + y : with_sign_of(a, y);
}

}  // namespace rushlight::kernels::RL_ISA
