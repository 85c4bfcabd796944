// Comparisons of numbers of any sign.
// Where code is compiled with PyTorch, the header is PyTorch's own.
#if defined(__has_include_next) && __has_include(<ATen/core/Tensor.h>)
#if __has_include_next(<torch/headeronly/util/TypeSafeSignMath.h>)
#include_next <torch/headeronly/util/TypeSafeSignMath.h>
#else
#include <torch/headeronly/util/TypeSafeSignMath.h>
#endif
#else
#pragma once

#include <limits>
#include <type_traits>

namespace c10 {

template <typename T>
constexpr bool is_negative([[maybe_unused]] const T& value) {
  if constexpr (std::is_unsigned_v<T>) {
    return false;
  } else {
    return value < T(0);
  }
}
template <typename T>
constexpr int signum(const T& value) {
  return (T(0) < value) - (value < T(0));
}
template <typename A, typename B>
constexpr bool signs_differ(const A& a, const B& b) {
  return is_negative(a) != is_negative(b);
}
template <typename Limit, typename T>
constexpr bool greater_than_max(const T& value) {
  constexpr bool overflows = std::numeric_limits<T>::digits > std::numeric_limits<Limit>::digits;
  return overflows && value > static_cast<T>(std::numeric_limits<Limit>::max());
}
template <typename Limit, typename T>
constexpr bool less_than_lowest(const T& value) {
  if constexpr (std::is_unsigned_v<T>) {
    return false;
  } else if constexpr (std::is_unsigned_v<Limit>) {
    return value < T(0);
  } else {
    constexpr bool overflows = std::numeric_limits<T>::digits > std::numeric_limits<Limit>::digits;
    return overflows && value < static_cast<T>(std::numeric_limits<Limit>::lowest());
  }
}

}  // namespace c10

#endif
