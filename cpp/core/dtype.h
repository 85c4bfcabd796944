// Element types and their properties. Their numbers are those of the .pte format, which are
// torch's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rushlight {

enum class DType : int8_t {
  UInt8 = 0,
  Int8 = 1,
  Int16 = 2,
  Int32 = 3,
  Int64 = 4,
  Float16 = 5,
  Float32 = 6,
  Float64 = 7,
  Complex32 = 8,
  Complex64 = 9,
  Complex128 = 10,
  Bool = 11,
  QInt8 = 12,
  QUInt8 = 13,
  QInt32 = 14,
  BFloat16 = 15,
  QUInt4x2 = 16,
  QUInt2x4 = 17,
  Bits16 = 22,
  Float8E5M2 = 23,
  Float8E4M3FN = 24,
  Float8E5M2FNUZ = 25,
  Float8E4M3FNUZ = 26,
  UInt16 = 27,
  UInt32 = 28,
  UInt64 = 29,
};

// The size of an element in bytes; 0 for a type that this runtime cannot hold.
size_t element_size(DType dtype);
// The alignment of an element, for types that this runtime can hold.
size_t element_alignment(DType dtype);
// "float32", "int64", …; "?" for an unknown number.
const char* dtype_name(DType dtype);

inline bool is_floating(DType d) {
  return d == DType::Float32 || d == DType::Float64 || d == DType::Float16 || d == DType::BFloat16;
}
inline bool is_integral(DType d) {  // false for bool
  return d == DType::UInt8 || d == DType::Int8 || d == DType::Int16 || d == DType::Int32 ||
         d == DType::Int64 || d == DType::UInt16 || d == DType::UInt32 || d == DType::UInt64;
}

}  // namespace rushlight
