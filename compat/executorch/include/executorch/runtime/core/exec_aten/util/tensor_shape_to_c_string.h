// Sizes as text: "(2, 3)".
#pragma once

#include <executorch/runtime/core/exec_aten/util/tensor_dimension_limit.h>
#include <executorch/runtime/core/span.h>

#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>

namespace executorch::runtime {

constexpr size_t kTensorShapeStringSizeLimit = 1 + 12 * kTensorDimensionLimit + 1;
namespace internal {
constexpr size_t kMaximumPrintableTensorShapeElement = std::numeric_limits<int32_t>::max();
}  // namespace internal

template <typename Size>
std::array<char, kTensorShapeStringSizeLimit> tensor_shape_to_c_string(Span<const Size> shape) {
  std::array<char, kTensorShapeStringSizeLimit> text{};
  if (shape.size() > kTensorDimensionLimit) {
    std::snprintf(text.data(), text.size(), "(ERR: tensor ndim exceeds limit)");
    return text;
  }
  size_t at = static_cast<size_t>(std::snprintf(text.data(), text.size(), "("));
  for (size_t i = 0; i < shape.size(); ++i) {
    const char* comma = i + 1 < shape.size() ? ", " : "";
    const bool printable = shape[i] >= 0 && static_cast<uint64_t>(shape[i]) <=
                                                internal::kMaximumPrintableTensorShapeElement;
    const int n = printable ? std::snprintf(&text[at], text.size() - at, "%" PRId64 "%s",
                                            static_cast<int64_t>(shape[i]), comma)
                            : std::snprintf(&text[at], text.size() - at, "ERR%s", comma);
    at += static_cast<size_t>(n);
  }
  std::snprintf(&text[at], text.size() - at, ")");
  return text;
}
inline auto tensor_shape_to_c_string(Span<const int32_t> shape) {
  return tensor_shape_to_c_string<int32_t>(shape);
}
inline auto tensor_shape_to_c_string(Span<const int64_t> shape) {
  return tensor_shape_to_c_string<int64_t>(shape);
}

}  // namespace executorch::runtime
