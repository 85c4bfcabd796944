#include "rushlight/core/evalue.h"

namespace rushlight {

const char* tag_name(Tag tag) {
  switch (tag) {
    case Tag::None:
      return "None";
    case Tag::Tensor:
      return "Tensor";
    case Tag::String:
      return "String";
    case Tag::Double:
      return "Double";
    case Tag::Int:
      return "Int";
    case Tag::Bool:
      return "Bool";
    case Tag::BoolList:
      return "BoolList";
    case Tag::DoubleList:
      return "DoubleList";
    case Tag::IntList:
      return "IntList";
    case Tag::TensorList:
      return "TensorList";
    case Tag::OptionalTensorList:
      return "OptionalTensorList";
  }
  return "?";
}

int64_t EValue::to_int() const {
  if (tag != Tag::Double) return i;
  // 2^63 is exact as a double; the comparisons are false for NaN.
  constexpr double kLimit = 9223372036854775808.0;
  if (d >= kLimit) return INT64_MAX;
  if (d < -kLimit) return INT64_MIN;
  return d == d ? static_cast<int64_t>(d) : 0;
}

}  // namespace rushlight
