// Bessel functions of orders 0 and 1, and Airy's function. The modified Bessel functions are in
// loops/special.cpp.
#include <math.h>  // j0 and similar functions are in POSIX, not in std

#include <cmath>
#include <limits>

#include "rushlight/kernels/portable/elementwise/special_math.h"

namespace rushlight::kernels::special {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Pair {
  double first;
  double second;
};

// 1 / k: multiplying is faster than dividing.
constexpr int kTerms = 26;
constexpr double kInverse[kTerms + 1] = {
    0,        1.0,      1.0 / 2,  1.0 / 3,  1.0 / 4,  1.0 / 5,  1.0 / 6,  1.0 / 7,  1.0 / 8,
    1.0 / 9,  1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13, 1.0 / 14, 1.0 / 15, 1.0 / 16, 1.0 / 17,
    1.0 / 18, 1.0 / 19, 1.0 / 20, 1.0 / 21, 1.0 / 22, 1.0 / 23, 1.0 / 24, 1.0 / 25, 1.0 / 26};

// Airy's function and its derivative at -9, -8, …, 2.
constexpr int kLowest = -9;
constexpr Pair kAiry[] = {
    {-0.0221337215473414037, -0.975663980926331595},
    {-0.0527050503563862026, 0.935560938198306551},
    {0.184280835250505637, -0.771008168410126548},
    {-0.329145173629823105, 0.345935487281342895},
    {0.35076100902411432, 0.327192818554443137},
    {-0.0702655329492895151, -0.79062857536858138},
    {-0.378814293677658074, 0.314583769216598814},
    {0.227407428201685576, 0.618259020741691041},
    {0.535560883292352119, -0.0101605671166452094},
    {0.355028053887817239, -0.258819403792806798},
    {0.135292416312881416, -0.159147441296793213},
    {0.0349241304232743791, -0.0530903844336536317},
};

// The Taylor series at the nearest integer. Its terms follow from y'' = x y.
double airy_near(double x) {
  const int at = static_cast<int>(std::lround(x));
  const double offset = x - at;
  const Pair& start = kAiry[at - kLowest];
  double before = 0;
  double now = start.first;
  double next = start.second;
  double power = 1;
  double sum = 0;
  for (int k = 0; k + 2 <= kTerms; ++k) {
    sum += now * power;
    power *= offset;
    if (std::abs(power) < 1e-18) break;
    const double after = (at * now + before) * kInverse[k + 1] * kInverse[k + 2];
    before = now;
    now = next;
    next = after;
  }
  return sum;
}

// Airy's function of -x for x > 9, by its asymptotic series.
double airy_of_negative(double x) {
  const double z = x * std::sqrt(x) * 2 / 3;
  double term = 1;
  double parts[2] = {0, 0};
  for (int k = 0; k < 24; ++k) {
    parts[k % 2] += k % 4 < 2 ? term : -term;
    const double six = 6.0 * k;
    const double next =
        term * (six + 5) * (six + 3) * (six + 1) / (216 * (k + 1) * (2 * k + 1) * z);
    if (next > term) break;
    term = next;
  }
  const double phase = z - kPi / 4;
  return (std::cos(phase) * parts[0] + std::sin(phase) * parts[1]) /
         (std::sqrt(kPi) * std::sqrt(std::sqrt(x)));
}

// Airy's function for x >= 2.25: sqrt(x / 3) / pi * K(z), where K is the modified Bessel function
// of the second kind of order 1/3 and z = 2/3 x^(3/2). sqrt(z) e^z K(z) is a polynomial in 4 / z -
// 1.
double airy_far(double x) {
  constexpr double kThird[] = {
      5.51713910544806130e-11,  -8.88814870003499085e-11, -1.57426104857290957e-10,
      2.21679983969416348e-10,  4.10824068885430990e-10,  -6.24984813248705537e-10,
      2.56127773261625962e-11,  -3.39046954008282240e-10, 1.93161873925213849e-09,
      -4.07460952920194208e-09, 8.66754497669874227e-09,  -2.08951991957510847e-08,
      5.24581588957845347e-08,  -1.37251488519740564e-07, 3.79701693908080902e-07,
      -1.12263482597924268e-06, 3.59816953666811405e-06,  -1.27618983966690226e-05,
      5.16724511571850075e-05,  -2.51406775650997165e-04, 1.61902509453929741e-03,
      -1.74614781576305847e-02, 1.23391246598803369e+00};
  const double root = std::sqrt(x);
  const double z = x * root * 2 / 3;
  if (z > 800) return 0;  // the result is less than the least double
  double sum = 0;
  for (const double c : kThird) sum = sum * (4 / z - 1) + c;
  return sum / (std::sqrt(2 * root) * kPi) * std::exp(-z);
}

}  // namespace

double airy_ai(double x) {
  if (!std::isfinite(x)) return kNaN;
  if (x < -9) return airy_of_negative(-x);
  return x < 2.25 ? airy_near(x) : airy_far(x);
}

// In eager, the oscillating functions are NaN at infinity.
double bessel_j0(double x) { return std::isinf(x) ? kNaN : ::j0(x); }
double bessel_j1(double x) { return std::isinf(x) ? kNaN : ::j1(x); }

double bessel_y0(double x) {
  if (x == 0) return -kInfinity;
  return x > 0 && !std::isinf(x) ? ::y0(x) : kNaN;
}

double bessel_y1(double x) {
  if (x == 0) return -kInfinity;
  return x > 0 && !std::isinf(x) ? ::y1(x) : kNaN;
}

double spherical_bessel_j0(double x) {
  if (std::isinf(x)) return 0;
  return std::abs(x) < 1e-4 ? 1 - x * x / 6 : std::sin(x) / x;
}

}  // namespace rushlight::kernels::special
