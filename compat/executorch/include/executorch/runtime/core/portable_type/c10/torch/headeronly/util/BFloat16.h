// bfloat16 as a type of C++.
// Where code is compiled with PyTorch, the header is PyTorch's own.
#if defined(__has_include_next) && __has_include(<ATen/core/Tensor.h>)
#if __has_include_next(<torch/headeronly/util/BFloat16.h>)
#include_next <torch/headeronly/util/BFloat16.h>
#else
#include <torch/headeronly/util/BFloat16.h>
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

inline uint16_t round_to_nearest_even(float value) {
  const uint32_t bits = fp32_to_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;  // NaN
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

inline float f32_from_bits(uint16_t bits) {
  return fp32_from_bits(static_cast<uint32_t>(bits) << 16);
}

}  // namespace detail

struct alignas(2) BFloat16 {
  struct from_bits_t {};
  static constexpr from_bits_t from_bits() { return {}; }

  uint16_t x;

  BFloat16() = default;
  constexpr BFloat16(uint16_t bits, from_bits_t) : x(bits) {}
  BFloat16(float value) : x(detail::round_to_nearest_even(value)) {}
  operator float() const { return detail::f32_from_bits(x); }
};

// Arithmetic is float32's, rounded once.
inline BFloat16 operator-(const BFloat16& a) {
  return BFloat16(static_cast<uint16_t>(a.x ^ 0x8000u), BFloat16::from_bits());
}
#define C10_OPERATORS_(op)                                                                  \
  inline BFloat16 operator op(const BFloat16& a, const BFloat16& b) {                       \
    return BFloat16(static_cast<float>(a) op static_cast<float>(b));                        \
  }                                                                                         \
  inline BFloat16& operator op## = (BFloat16 & a, const BFloat16& b) { return a = a op b; } \
  inline float operator op(BFloat16 a, float b) { return static_cast<float>(a) op b; }      \
  inline float operator op(float a, BFloat16 b) { return a op static_cast<float>(b); }      \
  inline double operator op(BFloat16 a, double b) { return static_cast<float>(a) op b; }    \
  inline double operator op(double a, BFloat16 b) { return a op static_cast<float>(b); }    \
  template <typename Int, typename = std::enable_if_t<std::is_integral_v<Int>>>             \
  BFloat16 operator op(BFloat16 a, Int b) {                                                 \
    return a op BFloat16(static_cast<float>(b));                                            \
  }                                                                                         \
  template <typename Int, typename = std::enable_if_t<std::is_integral_v<Int>>>             \
  BFloat16 operator op(Int a, BFloat16 b) {                                                 \
    return BFloat16(static_cast<float>(a)) op b;                                            \
  }
C10_OPERATORS_(+)
C10_OPERATORS_(-)
C10_OPERATORS_(*)
C10_OPERATORS_(/)
#undef C10_OPERATORS_

}  // namespace c10

template <>
class std::numeric_limits<c10::BFloat16> {
 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool is_bounded = true;
  static constexpr int digits = 8;
  static constexpr int radix = 2;
  static constexpr c10::BFloat16 of(uint16_t bits) {
    return c10::BFloat16(bits, c10::BFloat16::from_bits());
  }
  static constexpr c10::BFloat16 min() { return of(0x0080); }
  static constexpr c10::BFloat16 lowest() { return of(0xff7f); }
  static constexpr c10::BFloat16 max() { return of(0x7f7f); }
  static constexpr c10::BFloat16 epsilon() { return of(0x3c00); }
  static constexpr c10::BFloat16 infinity() { return of(0x7f80); }
  static constexpr c10::BFloat16 quiet_NaN() { return of(0x7fc0); }
  static constexpr c10::BFloat16 denorm_min() { return of(0x0001); }
};

#endif
