// Special functions of real numbers in double precision, one value at a time. loops/special.h has
// the functions that can be computed without branches. Double suffices for every floating type:
// each result is within a few units of 1e-15 of the function where that is well conditioned, and
// has torch's value at poles and outside of the domain.
#pragma once

#include <cstdint>

namespace rushlight::kernels::special {

double airy_ai(double x);
double bessel_j0(double x);
double bessel_j1(double x);
double bessel_y0(double x);
double bessel_y1(double x);
double digamma(double x);
double igamma(double a, double x);   // the regularised lower incomplete gamma function
double igammac(double a, double x);  // the upper one
double lgamma(double x);             // unlike std::lgamma, it writes no global variable
// `wide` is false where eager computes in float, which changes the result near the poles.
double polygamma(int64_t n, double x, bool wide);
double spherical_bessel_j0(double x);
double zeta(double x, double q);  // Hurwitz zeta function

}  // namespace rushlight::kernels::special
