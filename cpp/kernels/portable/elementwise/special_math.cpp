#include "rushlight/kernels/portable/elementwise/special_math.h"

#include <cmath>
#include <limits>

namespace rushlight::kernels::special {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// Bernoulli's numbers B(2k), from k = 1.
constexpr double kBernoulli[] = {1.0 / 6,       -1.0 / 30,       1.0 / 42,      -1.0 / 30,
                                 5.0 / 66,      -691.0 / 2730,   7.0 / 6,       -3617.0 / 510,
                                 43867.0 / 798, -174611.0 / 330, 854513.0 / 138};

// x^a exp(-x) / gamma(a)
double gamma_factor(double a, double x) { return std::exp(a * std::log(x) - x - lgamma(a)); }

// The lower function, for x < a + 1.
double lower_series(double a, double x) {
  double term = 1.0 / a;
  double sum = term;
  for (int k = 1; k < 100000 && term > kEpsilon / 4 * sum; ++k) {
    term *= x / (a + k);
    sum += term;
  }
  return sum * gamma_factor(a, x);
}

// The upper function, for x >= a + 1: its continued fraction by Lentz's method.
double upper_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a;
  double c = 1 / kTiny;
  double d = 1 / b;
  double h = d;
  for (int k = 1; k < 100000; ++k) {
    const double an = -static_cast<double>(k) * (k - a);
    b += 2;
    d = an * d + b;
    if (std::fabs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::fabs(c) < kTiny) c = kTiny;
    d = 1 / d;
    h *= d * c;
    if (std::fabs(d * c - 1) < kEpsilon) break;
  }
  return h * gamma_factor(a, x);
}

// The values that are known without computation; false if this is not one of them.
bool igamma_edge(double a, double x, double* lower) {
  if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0) {
    *lower = kNaN;
  } else if (a == 0) {
    *lower = x > 0 ? 1.0 : kNaN;
  } else if (x == 0) {
    *lower = 0.0;
  } else if (std::isinf(a)) {
    *lower = std::isinf(x) ? kNaN : 0.0;
  } else if (std::isinf(x)) {
    *lower = 1.0;
  } else {
    return false;
  }
  return true;
}

double trigamma(double x, bool wide) {
  double sign = 1.0;
  double result = 0.0;
  if (x < 0.5) {  // by reflection
    // Near the poles the result depends on how pi times x is rounded, so this rounds as eager's
    // type does.
    const float narrow = static_cast<float>(kPi) * static_cast<float>(x);
    const double sine = std::sin(wide ? kPi * x : static_cast<double>(narrow));
    result -= kPi * kPi / (sine * sine);
    sign = -1.0;
    x = 1 - x;
  }
  for (; x < 12; x += 1) result += 1 / (x * x);
  const double inverse = 1 / x;
  const double square = inverse * inverse;
  result += inverse + square / 2;
  double power = inverse * square;
  for (int k = 1; k <= 8; ++k, power *= square) result += kBernoulli[k - 1] * power;
  return sign * result;
}

}  // namespace

double digamma(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (x < 0) {
    if (x == std::floor(x)) return kNaN;
    const double part = x - std::trunc(x);  // exact, so that tan has a small argument
    return digamma(1 - x) - kPi / std::tan(kPi * part);
  }
  if (std::isinf(x)) return x;
  double result = 0.0;
  for (; x < 10; x += 1) result -= 1 / x;
  const double square = 1 / (x * x);
  double power = square;
  double sum = 0.0;
  for (int k = 1; k <= 8; ++k, power *= square) sum += kBernoulli[k - 1] / (2 * k) * power;
  return result + std::log(x) - 0.5 / x - sum;
}

double igamma(double a, double x) {
  double lower;
  if (igamma_edge(a, x, &lower)) return lower;
  return x < a + 1 ? lower_series(a, x) : 1 - upper_fraction(a, x);
}

double igammac(double a, double x) {
  double lower;
  if (igamma_edge(a, x, &lower)) return 1 - lower;
  return x < a + 1 ? 1 - lower_series(a, x) : upper_fraction(a, x);
}

double lgamma(double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return kInfinity;
  if (x <= 0) {
    if (x == std::floor(x)) return kInfinity;
    const double part = x - std::floor(x);
    return std::log(kPi / std::fabs(std::sin(kPi * part))) - lgamma(1 - x);
  }
  double product = 1.0;
  for (; x < 12; x += 1) product *= x;
  const double inverse = 1 / x;
  double power = inverse;
  double sum = 0.0;
  for (int k = 1; k <= 8; ++k, power *= inverse * inverse) {
    sum += kBernoulli[k - 1] / (2.0 * k * (2 * k - 1)) * power;
  }
  return (x - 0.5) * std::log(x) - x + 0.5 * std::log(2 * kPi) + sum - std::log(product);
}

double polygamma(int64_t n, double x, bool wide) {
  if (n == 0) return digamma(x);
  if (n == 1) return trigamma(x, wide);
  const double order = static_cast<double>(n);
  return (n % 2 == 1 ? 1.0 : -1.0) * std::exp(lgamma(order + 1)) * zeta(order + 1, x);
}

// The Euler-Maclaurin formula: adds the first terms one by one, and the rest as an integral with
// corrections.
double zeta(double x, double q) {
  if (x == 1) return kInfinity;
  if (!(x > 1) || std::isnan(q)) return kNaN;
  if (q <= 0) {
    if (q == std::floor(q)) return kInfinity;
    if (x != std::floor(x)) return kNaN;
    if (q < -1e6) return kNaN;  // too many terms would have to be added one by one
  }
  double sum = 0.0;
  for (int k = 0; k < 12 || q <= 12; ++k, q += 1) {
    const double term = std::pow(q, -x);
    sum += term;
    if (q > 0 && term < kEpsilon * sum * 1e-2) return sum;
  }
  const double power = std::pow(q, -x);
  sum += power * q / (x - 1) + power / 2;
  double factor = x * power / q;  // x (x+1) … (x+2k-2) q^(-x-2k+1) / (2k)!, without the Bernoulli
  double factorial = 2.0;
  for (int k = 1; k <= 11; ++k) {
    const double term = kBernoulli[k - 1] * factor / factorial;
    sum += term;
    if (std::fabs(term) < kEpsilon * std::fabs(sum)) break;
    factor *= (x + 2 * k - 1) * (x + 2 * k) / (q * q);
    factorial *= (2.0 * k + 1) * (2 * k + 2);
  }
  return sum;
}

}  // namespace rushlight::kernels::special
