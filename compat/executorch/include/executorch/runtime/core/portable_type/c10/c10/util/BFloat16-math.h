// Functions of <cmath> on reduced floats: those of float32, rounded once.
// Where code is compiled with PyTorch, the header is PyTorch's own.
#if defined(__has_include_next) && __has_include(<ATen/core/Tensor.h>)
#if __has_include_next(<c10/util/BFloat16-math.h>)
#include_next <c10/util/BFloat16-math.h>
#else
#include <c10/util/BFloat16-math.h>
#endif
#else
#pragma once

#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <cmath>

namespace std {

#define C10_FUNCTION_(name)                                                       \
  inline c10::Half name(c10::Half a) { return std::name(static_cast<float>(a)); } \
  inline c10::BFloat16 name(c10::BFloat16 a) { return std::name(static_cast<float>(a)); }
C10_FUNCTION_(acos)
C10_FUNCTION_(asin)
C10_FUNCTION_(atan)
C10_FUNCTION_(erf)
C10_FUNCTION_(erfc)
C10_FUNCTION_(exp)
C10_FUNCTION_(expm1)
C10_FUNCTION_(log)
C10_FUNCTION_(log10)
C10_FUNCTION_(log1p)
C10_FUNCTION_(log2)
C10_FUNCTION_(ceil)
C10_FUNCTION_(cos)
C10_FUNCTION_(cosh)
C10_FUNCTION_(floor)
C10_FUNCTION_(nearbyint)
C10_FUNCTION_(sin)
C10_FUNCTION_(sinh)
C10_FUNCTION_(tan)
C10_FUNCTION_(tanh)
C10_FUNCTION_(trunc)
C10_FUNCTION_(lgamma)
C10_FUNCTION_(sqrt)
#undef C10_FUNCTION_
#define C10_TEST_(name)                                                      \
  inline bool name(c10::Half a) { return std::name(static_cast<float>(a)); } \
  inline bool name(c10::BFloat16 a) { return std::name(static_cast<float>(a)); }
C10_TEST_(isfinite)
C10_TEST_(isinf)
C10_TEST_(isnan)
#undef C10_TEST_
inline c10::Half pow(c10::Half a, c10::Half b) {
  return std::pow(static_cast<float>(a), static_cast<float>(b));
}
inline c10::BFloat16 pow(c10::BFloat16 a, c10::BFloat16 b) {
  return std::pow(static_cast<float>(a), static_cast<float>(b));
}

}  // namespace std

#endif
