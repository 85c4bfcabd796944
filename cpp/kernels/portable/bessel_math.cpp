// Bessel functions of the orders 0 and 1 of both kinds, and Airy's function.
#include <math.h>  // NOLINT(modernize-deprecated-headers): j0 and its kin are POSIX's, not std's

#include <cmath>
#include <limits>

#include "rushlight/kernels/portable/special_math.h"

namespace rushlight::kernels::special {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kEuler = 0.57721566490153286061;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

struct Pair {
  double first;
  double second;
};

// exp(x) K of the orders v and v + 1 for x >= 2: Steed's continued fraction together with Temme's
// sum (N. M. Temme, On the numerical evaluation of the modified Bessel function of the third kind,
// 1975).
Pair scaled_k_of_large(double v, double x) {
  const double a1 = 0.25 - v * v;
  double b = 2 * (1 + x);
  double d = 1 / b;
  double delta = d;
  double fraction = d;
  double before = 0;
  double now = 1;
  double c = a1;
  double q = a1;
  double a = -a1;
  double sum = 1 + q * delta;
  for (int i = 2; i < 500; ++i) {
    a -= 2 * (i - 1);
    c = -a * c / i;
    const double next = (before - b * now) / a;
    before = now;
    now = next;
    q += c * next;
    b += 2;
    d = 1 / (b + a * d);
    delta *= b * d - 1;
    fraction += delta;
    const double term = q * delta;
    sum += term;
    if (std::abs(term) < std::abs(sum) * kEpsilon) break;
  }
  const double k = std::sqrt(kPi / (2 * x)) / sum;
  return {k, k * (v + x + 0.5 - a1 * fraction) / x};
}

// 1 / k, a product with which is quicker than a division.
constexpr int kTerms = 26;
constexpr double kInverse[kTerms + 1] = {
    0,        1.0,      1.0 / 2,  1.0 / 3,  1.0 / 4,  1.0 / 5,  1.0 / 6,  1.0 / 7,  1.0 / 8,
    1.0 / 9,  1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13, 1.0 / 14, 1.0 / 15, 1.0 / 16, 1.0 / 17,
    1.0 / 18, 1.0 / 19, 1.0 / 20, 1.0 / 21, 1.0 / 22, 1.0 / 23, 1.0 / 24, 1.0 / 25, 1.0 / 26};

// K of the orders 0 and 1 for x < 2: the series at 0.
Pair k_of_small(double x) {
  const double log_half = std::log(x / 2);
  const double square = x * x / 4;
  double psi = -kEuler;  // of k + 1
  double term0 = 1;      // square^k / k!^2
  double term1 = x / 2;  // (x / 2) square^k / (k! (k + 1)!)
  Pair sum{0, 1 / x};
  for (int k = 1; k < kTerms; ++k) {
    sum.first += term0 * (psi - log_half);
    sum.second += term1 * (log_half - psi - 0.5 * kInverse[k]);
    if (term0 < kEpsilon * 1e-3) break;
    psi += kInverse[k];
    term0 *= square * kInverse[k] * kInverse[k];
    term1 *= square * kInverse[k] * kInverse[k + 1];
  }
  return sum;
}

double modified_k(double x, bool second, bool scaled) {
  if (x == 0) return kInfinity;
  if (!(x > 0)) return kNaN;
  if (std::isinf(x)) return 0;
  if (x < 2) {
    const Pair k = k_of_small(x);
    return (second ? k.second : k.first) * (scaled ? std::exp(x) : 1.0);
  }
  const Pair k = scaled_k_of_large(0, x);
  return (second ? k.second : k.first) * (scaled ? 1.0 : std::exp(-x));
}

// Airy's function and its derivative at -9, -8, ..., 2.
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

// The Taylor series at the next integer, whose terms follow from y'' = x y.
double airy_near(double x) {
  const int at = static_cast<int>(std::lround(x));
  const double step = x - at;
  const Pair& start = kAiry[at - kLowest];
  double before = 0;
  double now = start.first;
  double next = start.second;
  double power = 1;
  double sum = 0;
  for (int k = 0; k + 2 <= kTerms; ++k) {
    sum += now * power;
    power *= step;
    if (std::abs(power) < 1e-18) break;
    const double after = (at * now + before) * kInverse[k + 1] * kInverse[k + 2];
    before = now;
    now = next;
    next = after;
  }
  return sum;
}

// Airy's function of -x for x > 9: the asymptotic series.
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

}  // namespace

double airy_ai(double x) {
  if (!std::isfinite(x)) return kNaN;
  if (x < -9) return airy_of_negative(-x);
  if (x < 2.25) return airy_near(x);
  const double z = x * std::sqrt(x) * 2 / 3;
  if (z > 800) return 0;  // below the least double
  return std::sqrt(x / 3) / kPi * scaled_k_of_large(1.0 / 3, z).first * std::exp(-z);
}

// At infinity eager's oscillating functions have no value.
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

double modified_bessel_k0(double x) { return modified_k(x, false, false); }
double modified_bessel_k1(double x) { return modified_k(x, true, false); }
double scaled_modified_bessel_k0(double x) { return modified_k(x, false, true); }
double scaled_modified_bessel_k1(double x) { return modified_k(x, true, true); }

double spherical_bessel_j0(double x) {
  if (std::isinf(x)) return 0;
  return std::abs(x) < 1e-4 ? 1 - x * x / 6 : std::sin(x) / x;
}

}  // namespace rushlight::kernels::special
