// float16 as a type of C++.
// Where code is compiled with PyTorch, the header is PyTorch's own.
#if defined(__has_include_next) && __has_include(<ATen/core/Tensor.h>)
#if __has_include_next(<torch/headeronly/util/Half.h>)
#include_next <torch/headeronly/util/Half.h>
#else
#include <torch/headeronly/util/Half.h>
#endif
#else
#pragma once

#include <torch/headeronly/macros/Macros.h>
#include <torch/headeronly/util/floating_point_utils.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace c10 {

namespace detail {

// Rounds to the nearest, ties to even.
inline uint16_t fp16_ieee_from_fp32_value(float value) {
  const uint32_t bits = fp32_to_bits(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);   // NaN
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {
    // A denormal: the sum with 0.5 has the float16's bits as its lowest, rounded.
    const float sum = fp32_from_bits(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (fp32_to_bits(sum) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000u) >> 13);
}

inline float fp16_ieee_to_fp32_value(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) return fp32_from_bits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  if (magnitude >= 0x0400u) return fp32_from_bits(sign | ((magnitude << 13) + 0x38000000u));
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  return fp32_from_bits(sign | fp32_to_bits(value));
}

inline uint32_t fp16_ieee_to_fp32_bits(uint16_t half) {
  return fp32_to_bits(fp16_ieee_to_fp32_value(half));
}

}  // namespace detail

struct alignas(2) Half {
  struct from_bits_t {};
  static constexpr from_bits_t from_bits() { return {}; }

  uint16_t x;

  Half() = default;
  constexpr Half(uint16_t bits, from_bits_t) : x(bits) {}
  Half(float value) : x(detail::fp16_ieee_from_fp32_value(value)) {}
  operator float() const { return detail::fp16_ieee_to_fp32_value(x); }
};

// Arithmetic is float32's, rounded once.
inline Half operator-(const Half& a) {
  return Half(static_cast<uint16_t>(a.x ^ 0x8000u), Half::from_bits());
}
#define C10_OPERATORS_(op)                                                           \
  inline Half operator op(const Half& a, const Half& b) {                            \
    return Half(static_cast<float>(a) op static_cast<float>(b));                     \
  }                                                                                  \
  inline Half& operator op## = (Half & a, const Half& b) { return a = a op b; }      \
  inline float operator op(Half a, float b) { return static_cast<float>(a) op b; }   \
  inline float operator op(float a, Half b) { return a op static_cast<float>(b); }   \
  inline double operator op(Half a, double b) { return static_cast<float>(a) op b; } \
  inline double operator op(double a, Half b) { return a op static_cast<float>(b); } \
  template <typename Int, typename = std::enable_if_t<std::is_integral_v<Int>>>      \
  Half operator op(Half a, Int b) {                                                  \
    return a op Half(static_cast<float>(b));                                         \
  }                                                                                  \
  template <typename Int, typename = std::enable_if_t<std::is_integral_v<Int>>>      \
  Half operator op(Int a, Half b) {                                                  \
    return Half(static_cast<float>(a)) op b;                                         \
  }
C10_OPERATORS_(+)
C10_OPERATORS_(-)
C10_OPERATORS_(*)
C10_OPERATORS_(/)
#undef C10_OPERATORS_

}  // namespace c10

template <>
class std::numeric_limits<c10::Half> {
 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool is_bounded = true;
  static constexpr int digits = 11;
  static constexpr int radix = 2;
  static constexpr c10::Half of(uint16_t bits) { return c10::Half(bits, c10::Half::from_bits()); }
  static constexpr c10::Half min() { return of(0x0400); }
  static constexpr c10::Half lowest() { return of(0xfbff); }
  static constexpr c10::Half max() { return of(0x7bff); }
  static constexpr c10::Half epsilon() { return of(0x1400); }
  static constexpr c10::Half infinity() { return of(0x7c00); }
  static constexpr c10::Half quiet_NaN() { return of(0x7e00); }
  static constexpr c10::Half denorm_min() { return of(0x0001); }
};

#endif
