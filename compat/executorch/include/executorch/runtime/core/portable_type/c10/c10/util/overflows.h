// Whether a number fits another type.
// Where code is compiled with PyTorch, the header is PyTorch's own.
#if defined(__has_include_next) && __has_include(<ATen/core/Tensor.h>)
#if __has_include_next(<c10/util/overflows.h>)
#include_next <c10/util/overflows.h>
#else
#include <c10/util/overflows.h>
#endif
#else
#pragma once

#include <torch/headeronly/util/TypeSafeSignMath.h>

#include <cmath>
#include <limits>
#include <type_traits>

namespace c10 {

// With `strict_unsigned`, a negative number does not fit an unsigned type; else it wraps.
template <typename To, typename From>
bool overflows(From from, [[maybe_unused]] bool strict_unsigned = false) {
  if constexpr (std::is_same_v<To, bool>) {
    return false;
  } else if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
    if (!strict_unsigned && std::is_unsigned_v<To> && is_negative(from)) {
      return -static_cast<double>(from) > static_cast<double>(std::numeric_limits<To>::max());
    }
    return less_than_lowest<To>(from) || greater_than_max<To>(from);
  } else {
    const auto value = static_cast<double>(from);
    if (std::isnan(value)) return !std::numeric_limits<To>::has_quiet_NaN;
    if (std::isinf(value) && std::numeric_limits<To>::has_infinity) return false;
    return value < static_cast<double>(std::numeric_limits<To>::lowest()) ||
           value > static_cast<double>(std::numeric_limits<To>::max());
  }
}

}  // namespace c10

#endif
