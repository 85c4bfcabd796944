#include "rushlight/core/dtype.h"

namespace rushlight {
namespace {

struct Entry {
  const char* name;
  uint8_t bytes;
};

// Indexed by the number of the type. An empty name means that this runtime does not have the type.
constexpr Entry kTypes[] = {
    {"uint8", 1},
    {"int8", 1},
    {"int16", 2},
    {"int32", 4},
    {"int64", 8},
    {"float16", 2},
    {"float32", 4},
    {"float64", 8},
    {"complex32", 4},
    {"complex64", 8},
    {"complex128", 16},
    {"bool", 1},
    {"qint8", 1},
    {"quint8", 1},
    {"qint32", 4},
    {"bfloat16", 2},
    {"quint4x2", 1},
    {"quint2x4", 1},
    {"", 0},
    {"", 0},
    {"", 0},
    {"", 0},
    {"bits16", 2},
    {"float8_e5m2", 1},
    {"float8_e4m3fn", 1},
    {"float8_e5m2fnuz", 1},
    {"float8_e4m3fnuz", 1},
    {"uint16", 2},
    {"uint32", 4},
    {"uint64", 8},
};
constexpr size_t kTypeCount = sizeof(kTypes) / sizeof(kTypes[0]);
static_assert(kTypeCount == static_cast<size_t>(DType::UInt64) + 1, "one entry per number");

}  // namespace

size_t element_size(DType dtype) {
  const size_t number = static_cast<uint8_t>(dtype);
  return number < kTypeCount ? kTypes[number].bytes : 0;
}

size_t element_alignment(DType dtype) {
  switch (dtype) {
    case DType::Complex32:  // aligned like one of its two numbers
      return 2;
    case DType::Complex64:
      return 4;
    case DType::Complex128:
      return 8;
    default:
      return element_size(dtype);
  }
}

const char* dtype_name(DType dtype) {
  const size_t number = static_cast<uint8_t>(dtype);
  return number < kTypeCount && kTypes[number].bytes != 0 ? kTypes[number].name : "?";
}

}  // namespace rushlight
