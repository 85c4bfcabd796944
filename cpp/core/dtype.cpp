#include "rushlight/core/dtype.h"

#include "rushlight/core/texts.h"

namespace rushlight {
namespace {

// Indexed by the number of the type. 0 bytes: this runtime does not have the type.
constexpr uint8_t kBytes[] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4,
                              2, 1, 1, 0, 0, 0, 0, 2, 1, 1, 1,  1, 2, 4, 8};
constexpr size_t kTypeCount = sizeof(kBytes);
static_assert(kTypeCount == static_cast<size_t>(DType::UInt64) + 1, "one entry per number");
constexpr char kNames[] =
    "uint8\0int8\0int16\0int32\0int64\0float16\0float32\0float64\0complex32\0complex64\0"
    "complex128\0bool\0qint8\0quint8\0qint32\0bfloat16\0quint4x2\0quint2x4\0?\0?\0?\0?\0"
    "bits16\0float8_e5m2\0float8_e4m3fn\0float8_e5m2fnuz\0float8_e4m3fnuz\0"
    "uint16\0uint32\0uint64";

}  // namespace

size_t element_size(DType dtype) {
  const size_t number = static_cast<uint8_t>(dtype);
  return number < kTypeCount ? kBytes[number] : 0;
}

size_t element_alignment(DType dtype) {
  // A complex number is aligned like one of its two parts.
  const bool is_complex = dtype >= DType::Complex32 && dtype <= DType::Complex128;
  return is_complex ? element_size(dtype) / 2 : element_size(dtype);
}

const char* dtype_name(DType dtype) {
  const size_t number = static_cast<uint8_t>(dtype);
  return number < kTypeCount ? text_at(kNames, number) : "?";
}

}  // namespace rushlight
