#include "rushlight/core/evalue.h"

#include "rushlight/core/texts.h"

namespace rushlight {

const char* tag_name(Tag tag) {
  static constexpr char kNames[] =
      "None\0Tensor\0String\0Double\0Int\0Bool\0BoolList\0DoubleList\0IntList\0TensorList\0?\0"
      "OptionalTensorList";
  static_assert(static_cast<size_t>(Tag::OptionalTensorList) == 11, "as the names are placed");
  return text_at(kNames, tag <= Tag::OptionalTensorList ? static_cast<size_t>(tag) : 10);
}

const char* tag_article(Tag tag) {
  if (tag == Tag::None) return "";
  const char first = tag_name(tag)[0];
  return first == 'I' || first == 'O' ? "an " : "a ";
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
