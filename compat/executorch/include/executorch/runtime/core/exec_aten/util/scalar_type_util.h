// Facts about element types, and switches over them.
#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_lists.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_switch.h>
#include <executorch/runtime/platform/assert.h>

#include <array>
#include <cinttypes>
#include <limits>
#include <type_traits>

namespace executorch::runtime {

using aten::ScalarType;

template <ScalarType N>
struct ScalarTypeToCppType;
template <typename T>
struct CppTypeToScalarType;
#define ET_SCALAR_TYPE_(ctype, name)             \
  template <>                                    \
  struct ScalarTypeToCppType<ScalarType::name> { \
    using type = ctype;                          \
  };                                             \
  template <>                                    \
  struct CppTypeToScalarType<ctype> : std::integral_constant<ScalarType, ScalarType::name> {};
ET_FORALL_SCALAR_TYPES(ET_SCALAR_TYPE_)
#undef ET_SCALAR_TYPE_

inline const char* toString(ScalarType type) {
  switch (type) {
#define ET_SCALAR_TYPE_(ctype, name) \
  case ScalarType::name:             \
    return #name;
    ET_FORALL_SCALAR_TYPES(ET_SCALAR_TYPE_)
#undef ET_SCALAR_TYPE_
    case ScalarType::Undefined:
      return "Undefined";
    default:
      return "UNKNOWN_SCALAR";
  }
}

// Bytes of an element; the program ends for a type that has none.
inline size_t elementSize(ScalarType type) {
  switch (type) {
#define ET_SCALAR_TYPE_(ctype, name) \
  case ScalarType::name:             \
    return sizeof(ctype);
    ET_FORALL_SCALAR_TYPES(ET_SCALAR_TYPE_)
#undef ET_SCALAR_TYPE_
    default:
      ET_CHECK_MSG(false, "Unknown ScalarType %" PRId8, static_cast<int8_t>(type));
  }
}

constexpr bool isValid(ScalarType type) {
  return static_cast<int8_t>(type) >= 0 && type < ScalarType::Undefined;
}
constexpr bool isIntegralType(ScalarType type, bool includeBool) {
  const bool is_small = type >= ScalarType::Byte && type <= ScalarType::Long;
  return is_small || (includeBool && type == ScalarType::Bool);
}
constexpr bool isFloatingType(ScalarType type) {
  return type == ScalarType::Double || type == ScalarType::Float || type == ScalarType::Half ||
         type == ScalarType::BFloat16;
}
constexpr bool isRealType(ScalarType type) {
  return isIntegralType(type, false) || type == ScalarType::Float || type == ScalarType::Double;
}
constexpr bool isRealHType(ScalarType type) { return isRealType(type) || type == ScalarType::Half; }
constexpr bool isRealHBType(ScalarType type) {
  return isRealHType(type) || type == ScalarType::Bool;
}
constexpr bool isRealHBF16Type(ScalarType type) {
  return isRealHType(type) || type == ScalarType::BFloat16;
}
constexpr bool isRealHBBF16Type(ScalarType type) {
  return isRealHBType(type) || type == ScalarType::BFloat16;
}
constexpr bool isComplexType(ScalarType type) {
  return type >= ScalarType::ComplexHalf && type <= ScalarType::ComplexDouble;
}
constexpr bool isBitsType(ScalarType type) {
  return type >= ScalarType::Bits1x8 && type <= ScalarType::Bits16;
}
constexpr bool isQIntType(ScalarType type) {
  return (type >= ScalarType::QInt8 && type <= ScalarType::QInt32) ||
         type == ScalarType::QUInt4x2 || type == ScalarType::QUInt2x4;
}
constexpr bool isFloat8Type(ScalarType type) {
  return type >= ScalarType::Float8_e5m2 && type <= ScalarType::Float8_e4m3fnuz;
}
constexpr bool isBarebonesUnsignedType(ScalarType type) {
  return type >= ScalarType::UInt16 && type <= ScalarType::UInt64;
}

template <typename T>
struct is_floating_point
    : std::bool_constant<std::is_floating_point_v<T> || std::is_same_v<T, aten::Half> ||
                         std::is_same_v<T, aten::BFloat16>> {};
template <typename T>
struct is_reduced_floating_point
    : std::bool_constant<std::is_same_v<T, aten::Half> || std::is_same_v<T, aten::BFloat16>> {};
template <typename T>
constexpr bool is_reduced_floating_point_v = is_reduced_floating_point<T>::value;
template <typename T, bool includeBool>
struct is_integral_type
    : std::bool_constant<isIntegralType(CppTypeToScalarType<T>::value, includeBool)> {};
template <typename T>
struct is_complex_type : std::bool_constant<isComplexType(CppTypeToScalarType<T>::value)> {};
template <typename T>
struct is_bits_type : std::bool_constant<isBitsType(CppTypeToScalarType<T>::value)> {};
template <typename T>
struct is_qint_type : std::bool_constant<isQIntType(CppTypeToScalarType<T>::value)> {};
template <typename T>
struct is_float8_type : std::bool_constant<isFloat8Type(CppTypeToScalarType<T>::value)> {};
template <typename T>
struct is_barebones_unsigned_type
    : std::bool_constant<isBarebonesUnsignedType(CppTypeToScalarType<T>::value)> {};

constexpr ScalarType toQIntType(ScalarType type) {
  if (type == ScalarType::Byte) return ScalarType::QUInt8;
  if (type == ScalarType::Char) return ScalarType::QInt8;
  return type == ScalarType::Int ? ScalarType::QInt32 : type;
}
constexpr ScalarType toUnderlying(ScalarType type) {
  if (type == ScalarType::QInt8) return ScalarType::Char;
  if (type == ScalarType::QInt32) return ScalarType::Int;
  return isQIntType(type) ? ScalarType::Byte : type;
}
inline bool isUnderlying(ScalarType type, ScalarType quantised) {
  return type == toUnderlying(quantised);
}
inline bool isSignedType(ScalarType type) {
  ET_CHECK_MSG(!isQIntType(type), "isSignedType() is not for quantised types");
  return !(type == ScalarType::Byte || type == ScalarType::Bool || isBarebonesUnsignedType(type));
}
constexpr ScalarType toRealValueType(ScalarType type) {
  if (type == ScalarType::ComplexHalf) return ScalarType::Half;
  if (type == ScalarType::ComplexFloat) return ScalarType::Float;
  return type == ScalarType::ComplexDouble ? ScalarType::Double : type;
}
constexpr ScalarType toComplexType(ScalarType type) {
  if (isComplexType(type)) return type;
  if (type == ScalarType::Half) return ScalarType::ComplexHalf;
  return type == ScalarType::Double ? ScalarType::ComplexDouble : ScalarType::ComplexFloat;
}

// Whether a result of one type may be stored in another: not complex as real, nor float as integer,
// nor a number as bool.
constexpr bool canCast(ScalarType from, ScalarType to) {
  const bool keeps_parts = !isComplexType(from) || isComplexType(to);
  const bool keeps_fraction = !isFloatingType(from) || !isIntegralType(to, false);
  return keeps_parts && keeps_fraction && (from == ScalarType::Bool || to != ScalarType::Bool);
}
template <typename From, typename To>
struct can_cast : std::bool_constant<canCast(CppTypeToScalarType<From>::value,
                                             CppTypeToScalarType<To>::value)> {};
template <typename To, typename From>
To convert(From value) {
  if constexpr (is_reduced_floating_point_v<From>) {
    return static_cast<To>(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

namespace internal {

// Bool, then integers by their size, then floats.
constexpr int promotion_rank(ScalarType type) {
  constexpr int kRanks[] = {1, 1, 2, 3, 4, 5, 7, 8};  // Byte to Double
  if (type == ScalarType::Bool) return 0;
  return type == ScalarType::BFloat16 ? 6 : kRanks[static_cast<int>(type)];
}

constexpr ScalarType promote_real(ScalarType a, ScalarType b) {
  if (a == b) return a;
  const bool is_signed_pair = (a == ScalarType::Byte && b == ScalarType::Char) ||
                              (a == ScalarType::Char && b == ScalarType::Byte);
  if (is_signed_pair) return ScalarType::Short;
  const bool is_half_pair = (a == ScalarType::Half && b == ScalarType::BFloat16) ||
                            (a == ScalarType::BFloat16 && b == ScalarType::Half);
  if (is_half_pair) return ScalarType::Float;
  return promotion_rank(a) > promotion_rank(b) ? a : b;
}

}  // namespace internal

// The type of a result of two types, as in PyTorch. With `half_to_float`, float16 computes in
// float32.
constexpr ScalarType promoteTypes(ScalarType a, ScalarType b, bool half_to_float = false) {
  if (half_to_float && (a == ScalarType::Half || a == ScalarType::BFloat16)) a = ScalarType::Float;
  if (half_to_float && (b == ScalarType::Half || b == ScalarType::BFloat16)) b = ScalarType::Float;
  if (a == b) return a;
  if (isComplexType(a) || isComplexType(b)) {
    const ScalarType real = internal::promote_real(toRealValueType(a), toRealValueType(b));
    return toComplexType(real);
  }
  const bool known = isRealHBBF16Type(a) && isRealHBBF16Type(b);
  return known ? internal::promote_real(a, b) : ScalarType::Undefined;
}
template <typename A, typename B, bool half_to_float = false>
struct promote_types {
  static constexpr ScalarType promoted =
      promoteTypes(CppTypeToScalarType<A>::value, CppTypeToScalarType<B>::value, half_to_float);
  using type = typename ScalarTypeToCppType<promoted>::type;
};

}  // namespace executorch::runtime

namespace executorch::aten {
using ::executorch::runtime::elementSize;
}  // namespace executorch::aten

namespace torch::executor {
using ::executorch::runtime::can_cast;
using ::executorch::runtime::canCast;
using ::executorch::runtime::convert;
using ::executorch::runtime::CppTypeToScalarType;
using ::executorch::runtime::elementSize;
using ::executorch::runtime::is_barebones_unsigned_type;
using ::executorch::runtime::is_bits_type;
using ::executorch::runtime::is_complex_type;
using ::executorch::runtime::is_float8_type;
using ::executorch::runtime::is_floating_point;
using ::executorch::runtime::is_integral_type;
using ::executorch::runtime::is_qint_type;
using ::executorch::runtime::is_reduced_floating_point;
using ::executorch::runtime::isBitsType;
using ::executorch::runtime::isComplexType;
using ::executorch::runtime::isFloatingType;
using ::executorch::runtime::isIntegralType;
using ::executorch::runtime::isQIntType;
using ::executorch::runtime::isRealHBType;
using ::executorch::runtime::isRealHType;
using ::executorch::runtime::isRealType;
using ::executorch::runtime::isValid;
using ::executorch::runtime::promote_types;
using ::executorch::runtime::promoteTypes;
using ::executorch::runtime::ScalarTypeToCppType;
using ::executorch::runtime::toString;
}  // namespace torch::executor
