#include "rushlight/kernels/portable/loops/elementwise/special.h"

#include "rushlight/kernel/loops/vec_math.h"

namespace rushlight::kernels::RL_ISA {
namespace {

constexpr double kHalfRoot = 0.70710678118654752440;  // sqrt(1/2)

// Evaluates the polynomial with these coefficients, the one of the highest power first.
template <int count>
double polynomial(const double (&coefficients)[count], double x) {
  double sum = coefficients[0];
#pragma GCC unroll 32
  for (int i = 1; i < count; ++i) sum = sum * x + coefficients[i];
  return sum;
}

// --- error function -----------------------------------------------------------------------------

// e^(high + low) for a small `low`.
double exp_sum(double high, double low) {
  high = high > 710.0 ? 710.0 : high;
  high = high < -746.0 ? -746.0 : high;
  const DoubleReduced e = reduce_ln2(high);
  const int32_t half = e.n >> 1;
  return (expm1_small(e.r + low) + 1.0) * double_exp2_int(half) * double_exp2_int(e.n - half);
}

// e^(scale * x^2), where scale is a power of two. Rounding the square would cost x^2 units in the
// last place, so x is split into an upper part, whose square is exact, and a rest.
double exp_square(double x, double scale) {
  x = x > 40.0 ? 40.0 : x;  // the result is infinity or 0 beyond that
  const double head = double_of(bits_of(x) & ~uint64_t{0x7ffffff});
  return exp_sum(scale * (head * head), scale * ((x - head) * (x + head)));
}

// e^(a^2) erfc(a) for a >= 0. This times (1 + 2a) is smooth in (a - 4) / (a + 4) over the whole
// range (Shepherd and Laframboise, Chebyshev approximation of (1 + 2x) exp(x^2) erfc(x), 1981).
double erfcx_positive(double a) {
  constexpr double kSmooth[] = {
      1.57184556173919229e-09,  -6.97482365658484947e-09, -1.63672194592556761e-08,
      9.28609473647365228e-08,  7.11589871383950602e-08,  -8.01815957925655883e-07,
      2.97981857388342728e-07,  5.68928651040159217e-06,  -1.12250533630760464e-05,
      -2.43876011573799374e-05, 1.50623058178877553e-04,  -1.99261043295823580e-04,
      -7.57773688683019571e-04, 5.03197102903658704e-03,  -1.61977339865768989e-02,
      3.71675153816172915e-02,  -6.63303658195063678e-02, 9.37328350112366232e-02,
      -1.01039066035928757e-01, 6.80970542541995266e-02,  1.53796521026123914e-02,
      -1.39621116840556919e-01, 1.23299511862555256e+00};
  return polynomial(kSmooth, 1.0 - 8.0 / (a + 4.0)) / (1.0 + 2.0 * a);
}

double erfc_of(double x) {
  const double a = fabs(x);
  const double tail = exp_square(a, -1.0) * erfcx_positive(a);
  return x < 0.0 ? 2.0 - tail : tail;
}

double erfcx_of(double x) {
  const double a = fabs(x);
  const double scaled = erfcx_positive(a);
  return x < 0.0 ? 2.0 * exp_square(a, 1.0) - scaled : scaled;
}

// The logarithm of the normal distribution function. For x < 0 that function is e^(-x^2/2) times
// half of `scaled`.
double log_ndtr_of(double x) {
  const double a = fabs(x);
  const double scaled = erfcx_positive(a * kHalfRoot);
  const double tail = 0.5 * exp_square(a, -0.5) * scaled;
  const double u = 1.0 - tail;
  const double lost = (-tail - (u - 1.0)) / u;  // as in vlog1p
  return vlog(x < 0.0 ? 0.5 * scaled : u) + (x < 0.0 ? -0.5 * x * x : lost);
}

// --- inverse of the normal distribution ---------------------------------------------------------

// The x at which the normal distribution function is 1/2 + q. `tail` is 1/2 - |q|, which the caller
// knows more exactly (Wichura, Algorithm AS 241, 1988).
double normal_quantile(double q, double tail) {
  constexpr double kMiddle[] = {2.5090809287301226727e+3, 3.3430575583588128105e+4,
                                6.7265770927008700853e+4, 4.5921953931549871457e+4,
                                1.3731693765509461125e+4, 1.9715909503065514427e+3,
                                1.3314166789178437745e+2, 3.3871328727963666080e+0};
  constexpr double kMiddleBelow[] = {5.2264952788528545610e+3, 2.8729085735721942674e+4,
                                     3.9307895800092710610e+4, 2.1213794301586595867e+4,
                                     5.3941960214247511077e+3, 6.8718700749205790830e+2,
                                     4.2313330701600911252e+1, 1.0};
  constexpr double kTail[] = {7.74545014278341407640e-4, 2.27238449892691845833e-2,
                              2.41780725177450611770e-1, 1.27045825245236838258e+0,
                              3.64784832476320460504e+0, 5.76949722146069140550e+0,
                              4.63033784615654529590e+0, 1.42343711074968357734e+0};
  constexpr double kTailBelow[] = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                                   1.51986665636164571966e-2, 1.48103976427480074590e-1,
                                   6.89767334985100004550e-1, 1.67638483018380384940e+0,
                                   2.05319162663775882187e+0, 1.0};
  constexpr double kFar[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                             1.24266094738807843860e-3, 2.65321895265761230930e-2,
                             2.96560571828504891230e-1, 1.78482653991729133580e+0,
                             5.46378491116411436990e+0, 6.65790464350110377720e+0};
  constexpr double kFarBelow[] = {2.04426310338993978564e-15, 1.42151175831644588870e-7,
                                  1.84631831751005468180e-5,  7.86869131145613259100e-4,
                                  1.48753612908506148525e-2,  1.36929880922735805310e-1,
                                  5.99832206555887937690e-1,  1.0};
  const bool middle = fabs(q) <= 0.425;
  const double z = 0.180625 - q * q;
  const double r = sqrt(-vlog(tail));
  const bool far = r > 5.0;
  const double s = far ? r - 5.0 : r - 1.6;
  double above = far ? polynomial(kFar, s) : polynomial(kTail, s);
  double below = far ? polynomial(kFarBelow, s) : polynomial(kTailBelow, s);
  above = middle ? fabs(q) * polynomial(kMiddle, z) : above;
  below = middle ? polynomial(kMiddleBelow, z) : below;
  return with_sign_of(tail == 0.0 ? kDoubleInf : above / below, q);
}

double erfinv_of(double x) { return kHalfRoot * normal_quantile(0.5 * x, 0.5 - 0.5 * fabs(x)); }

double ndtri_of(double p) { return normal_quantile(p - 0.5, p < 0.5 ? p : 1.0 - p); }

// --- modified Bessel functions ------------------------------------------------------------------

// Computed by the power series up to kNear, and beyond by a polynomial in 1 / a.
constexpr double kNear = 12.0;

// The function of order 0, or the function of order 1 divided by x / 2, at a in [0, kNear].
template <int order>
double bessel_near(double a) {
  constexpr double kZero[] = {
      1.87788720773325403e-29, 6.95368486382148089e-28, 7.15231752417599859e-25,
      1.24586800832173052e-22, 2.60510758091008105e-20, 4.35129768727184623e-18,
      6.27749607663807723e-16, 7.59384931483466968e-14, 7.59408127670993199e-12,
      6.15118550030910803e-10, 3.93675999397190247e-08, 1.92901234148227161e-06,
      6.94444444556726996e-05, 1.73611111109227148e-03, 2.77777777777957272e-02,
      2.49999999999991812e-01, 1.00000000000000111e+00, 1.0};
  constexpr double kOne[] = {
      1.01624756848905679e-30, 4.82462669058115577e-29, 4.38000921764777357e-26,
      8.37203968874645897e-24, 1.85754640236068895e-21, 3.34827028639489771e-19,
      5.23096770916849076e-17, 6.90355047868666004e-15, 7.59407438507285688e-13,
      6.83465123661356829e-11, 4.92094994389312203e-09, 2.75573191884944508e-07,
      1.15740740751061611e-05, 3.47222222220314419e-04, 6.94444444444648062e-03,
      8.33333333333322740e-02, 5.00000000000000222e-01, 1.0};
  return polynomial(order == 0 ? kZero : kOne, 0.25 * a * a);
}

// sqrt(a) e^-a times the function, for a >= kNear.
template <int order>
double bessel_far(double a) {
  constexpr double kZero[] = {
      -2.16982266592858130e-12, -3.94913432723649304e-12, 4.49416921828714335e-12,
      1.68298741463595959e-11,  2.22658579941719644e-11,  4.48316778478776349e-11,
      1.54567642860607173e-10,  6.49103514235776110e-10,  3.44385745763177818e-09,
      2.36882494143053444e-08,  2.17160449687848174e-07,  2.79770703401956881e-06,
      5.59848253362017575e-05,  2.18216817211657485e-03,  4.01071065066847421e-01};
  constexpr double kOne[] = {
      2.29861196808923997e-12,  4.10525888208267742e-12,  -4.93868353771791699e-12,
      -1.78691211845072581e-11, -2.35965739374135061e-11, -4.86191217122752919e-11,
      -1.70479547915945072e-10, -7.29325587280300563e-10, -3.96797937120889062e-09,
      -2.82534969032461937e-08, -2.72684494343962848e-07, -3.82795137192085898e-06,
      -9.12475535533099495e-05, -6.40545360348195730e-03, 3.92624494204116548e-01};
  return polynomial(order == 0 ? kZero : kOne, 2 * kNear / a - 1.0);
}

template <int order>
double bessel(double x) {
  const double a = fabs(x);
  const double near = bessel_near<order>(a) * (order == 0 ? 1.0 : 0.5 * a);
  // Multiplies by e^a in two factors, since e^a alone may overflow where the result is finite.
  // Infinity gives NaN, as in torch.
  const double root = vexp(0.5 * a);
  const double far = bessel_far<order>(a) / sqrt(a) * root * root;
  const double result = a < kNear ? near : far;
  return order == 0 ? result : with_sign_of(result, x);
}

template <int order>
double bessel_scaled(double x) {
  const double a = fabs(x);
  const double near = bessel_near<order>(a) * (order == 0 ? 1.0 : 0.5 * a) * vexp(-a);
  const double far = bessel_far<order>(a) / sqrt(a);
  const double result = a < kNear ? near : far;
  return order == 0 ? result : with_sign_of(result, x);
}

// The function of the second kind for a in [0, kNearSecond): its series at 0, which includes a
// logarithm.
constexpr double kNearSecond = 2.0;

template <int order>
double bessel_second_near(double a) {
  constexpr double kZero[] = {1.80153933611761782e-11, 1.31478728354448914e-09,
                              7.93532822173404488e-08, 3.61262245189435751e-06,
                              1.18480394368864871e-04, 2.61478761861004267e-03,
                              3.48921574564689541e-02, 2.30696083774614435e-01,
                              4.22784335098467211e-01, -5.77215664901532861e-01};
  constexpr double kOne[] = {-3.18170706807274332e-10, -2.04143352909196268e-08,
                             -1.07159144269786287e-06, -4.14224444368109755e-05,
                             -1.11535950627297336e-03, -1.91821898354935239e-02,
                             -1.81575166961446520e-01, -6.72784335098420942e-01,
                             1.54431329803064320e-01,  1.0};
  constexpr double kLn2 = 0.69314718055994530942;
  const bool small = a < 1.0;  // a / 2 may be 0, which has no logarithm
  const double log_half = vlog(small ? a : 0.5 * a) - (small ? kLn2 : 0.0);
  const double square = 0.25 * a * a;
  if (order == 0) return polynomial(kZero, square) - log_half * bessel_near<0>(a);
  return polynomial(kOne, square) / a + log_half * (0.5 * a * bessel_near<1>(a));
}

// sqrt(a) e^a times that function, for a >= kNearSecond.
template <int order>
double bessel_second_far(double a) {
  constexpr double kZero[] = {
      1.09269835372687348e-10,  -1.75975288091957069e-10, -3.11993612968210501e-10,
      4.39272600021076324e-10,  8.13391320546411457e-10,  -1.23669232770962879e-09,
      4.75754470577637414e-11,  -6.64387863184323431e-10, 3.80839985991904293e-09,
      -8.02520560490447598e-09, 1.70475358842496961e-08,  -4.10567387249153642e-08,
      1.02954317593911996e-07,  -2.68975986553958376e-07, 7.42780123219009592e-07,
      -2.19116738374178652e-06, 7.00224564575565101e-06,  -2.47352054284897196e-05,
      9.95605474202941897e-05,  -4.79769056732884389e-04, 3.03289181027532063e-03,
      -3.10714618248898969e-02, 1.21859533851339053e+00};
  constexpr double kOne[] = {
      -1.19316683931121581e-10, 1.92738080875405160e-10,  3.38678041678080041e-10,
      -4.77441121785095000e-10, -8.90859671092390567e-10, 1.36158594044606471e-09,
      -8.33622719599145647e-11, 7.96624279850409417e-10,  -4.33193998565862918e-09,
      9.21389402028953256e-09,  -1.98175771415911146e-08, 4.81543467908547775e-08,
      -1.22031863519384035e-07, 3.23056719885393422e-07,  -9.06708763337139326e-07,
      2.73003010435272163e-06,  -8.96120738775002518e-06, 3.28438665023559564e-05,
      -1.39590219562722241e-04, 7.35724154871838546e-04,  -5.56672988007458825e-03,
      1.03349737753865641e-01,  1.36315189037134197e+00};
  return polynomial(order == 0 ? kZero : kOne, 2 * kNearSecond / a - 1.0);
}

template <int order, bool scaled>
double bessel_second(double x) {
  const double near = bessel_second_near<order>(x) * (scaled ? vexp(x) : 1.0);
  const double far = bessel_second_far<order>(x) / sqrt(x) * (scaled ? 1.0 : vexp(-x));
  const double result = x < kNearSecond ? near : far;
  return x > 0.0 ? result : x == 0.0 ? kDoubleInf : __builtin_nan("");
}

// --- logarithm of the gamma function ------------------------------------------------------------

// sin(pi s) for s in [0, 1/2], by the first terms of its series.
double sine_of_pi(double s) {
  constexpr double kSine[] = {
      -1.05184717169320651e-11, 5.39266466260812895e-10,  -2.29484289972698730e-08,
      7.95205400147551261e-07,  -2.19153534478302173e-05, 4.66302805767612554e-04,
      -7.37043094571435044e-03, 8.21458866111282326e-02,  -5.99264529320792105e-01,
      2.55016403987734552e+00,  -5.16771278004997026e+00, 3.14159265358979312e+00};
  return s * polynomial(kSine, s * s);
}

// Uses Stirling's series for arguments from 8 on. A smaller argument is increased by 8, and the
// logarithm of the product of the 8 skipped factors is subtracted. A negative argument is
// reflected, and the sine is included in the product.
double lgamma_of(double x) {
  constexpr double kStirling[] = {-3617.0 / 122400, 1.0 / 156,  -691.0 / 360360, 1.0 / 1188,
                                  -1.0 / 1680,      1.0 / 1260, -1.0 / 360,      1.0 / 12};
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  constexpr double kPi = 3.14159265358979323846;
  const bool negative = x <= 0.0;
  const double a = negative ? 1.0 - x : x;
  const bool near = a < 8.0;
  const double product =
      a * (a + 1.0) * (a + 2.0) * (a + 3.0) * (a + 4.0) * (a + 5.0) * (a + 6.0) * (a + 7.0);
  const double moved = near ? product : 1.0;
  const double y = near ? a + 8.0 : a;
  const double inverse = 1.0 / y;
  const double series = inverse * polynomial(kStirling, inverse * inverse);
  const double stirling = (y - 0.5) * (vlog(y) - 1.0) + (kHalfLogTwoPi - 0.5) + series;
  // Near zero, the sine over the product would be too small a number, so it is scaled.
  const double distance = fabs(x - vround(x));
  const bool tiny = distance < 1e-200;
  const double sine = sine_of_pi(tiny ? distance * 0x1p200 : distance);
  const double factor = vlog(negative ? sine / (kPi * moved) : moved);
  const double scaled = negative && tiny ? 200.0 * 0.69314718055994530942 : 0.0;
  const double result = (negative ? -stirling : stirling) - factor + scaled;
  const bool zero = x == 1.0 || x == 2.0;
  return fabs(x) == kDoubleInf ? kDoubleInf : zero ? 0.0 : result;
}

// Flattened, because a loop with a call in it is not vectorised.
template <double (*fn)(double)>
__attribute__((flatten)) void loop(const void* const* in, void* out, size_t n, LoopArgs*) {
  const double* x = static_cast<const double*>(in[0]);
  double* y = static_cast<double*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = fn(x[i]);
}

}  // namespace

const SpecialLoops special_loops = {{
    loop<erfc_of>,
    loop<erfcx_of>,
    loop<erfinv_of>,
    loop<bessel<0>>,
    loop<bessel_scaled<0>>,
    loop<bessel<1>>,
    loop<bessel_scaled<1>>,
    loop<bessel_second<0, false>>,
    loop<bessel_second<0, true>>,
    loop<bessel_second<1, false>>,
    loop<bessel_second<1, true>>,
    loop<lgamma_of>,
    loop<log_ndtr_of>,
    loop<ndtri_of>,
}};

}  // namespace rushlight::kernels::RL_ISA
