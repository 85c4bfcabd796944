// A number of one of three kinds.
#pragma once

#include <executorch/runtime/core/portable_type/bfloat16.h>
#include <executorch/runtime/core/portable_type/half.h>
#include <executorch/runtime/core/tag.h>
#include <executorch/runtime/platform/assert.h>

#include <cstdint>
#include <type_traits>

namespace executorch::runtime::etensor {

class Scalar {
 public:
  Scalar() : Scalar(int64_t{0}) {}
  template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
  Scalar(T value) : tag_(std::is_same_v<T, bool> ? Tag::Bool : Tag::Int) {
    v_.as_int = static_cast<int64_t>(value);
  }
  Scalar(double value) : tag_(Tag::Double) { v_.as_double = value; }
  Scalar(float value) : Scalar(static_cast<double>(value)) {}
  Scalar(Half value) : Scalar(static_cast<double>(static_cast<float>(value))) {}
  Scalar(BFloat16 value) : Scalar(static_cast<double>(static_cast<float>(value))) {}

  // The value as T; the program ends if the scalar is of a kind that T does not stand for.
  template <typename T>
  T to() const {
    if constexpr (std::is_same_v<T, bool>) {
      ET_CHECK_MSG(isBoolean(), "Scalar is not a bool.");
      return v_.as_int != 0;
    } else if constexpr (std::is_integral_v<T>) {
      ET_CHECK_MSG(isIntegral(true), "Scalar is not an integer.");
      return static_cast<T>(v_.as_int);
    } else {
      ET_CHECK_MSG(isFloatingPoint() || isIntegral(true), "Scalar is not a number.");
      return static_cast<T>(isFloatingPoint() ? v_.as_double : static_cast<double>(v_.as_int));
    }
  }

  bool isIntegral(bool includeBool) const {
    return tag_ == Tag::Int || (includeBool && tag_ == Tag::Bool);
  }
  bool isFloatingPoint() const { return tag_ == Tag::Double; }
  bool isBoolean() const { return tag_ == Tag::Bool; }

 private:
  Tag tag_;
  union {
    double as_double;
    int64_t as_int;  // of a bool 0 or 1
  } v_;
};

}  // namespace executorch::runtime::etensor

namespace torch::executor {
using ::executorch::runtime::etensor::Scalar;
}  // namespace torch::executor
