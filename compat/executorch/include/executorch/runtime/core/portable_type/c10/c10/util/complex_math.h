// Functions of <complex> on c10::complex.
// Where code is compiled with PyTorch, the header is PyTorch's own.
#if defined(__has_include_next) && __has_include(<ATen/core/Tensor.h>)
#if __has_include_next(<c10/util/complex_math.h>)
#include_next <c10/util/complex_math.h>
#else
#include <c10/util/complex_math.h>
#endif
#else
#pragma once

#include <torch/headeronly/util/complex.h>

#include <complex>

namespace c10_complex_math {

#define C10_FUNCTION_(name)                                             \
  template <typename T>                                                 \
  c10::complex<T> name(const c10::complex<T>& a) {                      \
    return c10::complex<T>(std::name(static_cast<std::complex<T>>(a))); \
  }
C10_FUNCTION_(exp)
C10_FUNCTION_(log)
C10_FUNCTION_(log10)
C10_FUNCTION_(sqrt)
C10_FUNCTION_(sin)
C10_FUNCTION_(cos)
C10_FUNCTION_(tan)
C10_FUNCTION_(asin)
C10_FUNCTION_(acos)
C10_FUNCTION_(atan)
C10_FUNCTION_(sinh)
C10_FUNCTION_(cosh)
C10_FUNCTION_(tanh)
C10_FUNCTION_(asinh)
C10_FUNCTION_(acosh)
C10_FUNCTION_(atanh)
#undef C10_FUNCTION_
template <typename T>
c10::complex<T> pow(const c10::complex<T>& a, const c10::complex<T>& b) {
  return c10::complex<T>(
      std::pow(static_cast<std::complex<T>>(a), static_cast<std::complex<T>>(b)));
}

}  // namespace c10_complex_math

using c10_complex_math::acos;
using c10_complex_math::acosh;
using c10_complex_math::asin;
using c10_complex_math::asinh;
using c10_complex_math::atan;
using c10_complex_math::atanh;
using c10_complex_math::cos;
using c10_complex_math::cosh;
using c10_complex_math::exp;
using c10_complex_math::log;
using c10_complex_math::log10;
using c10_complex_math::pow;
using c10_complex_math::sin;
using c10_complex_math::sinh;
using c10_complex_math::sqrt;
using c10_complex_math::tan;
using c10_complex_math::tanh;

#endif
