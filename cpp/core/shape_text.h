// Sizes as text, "(2, 3)", for messages.
#pragma once

#include <cstdint>

#include "rushlight/core/span.h"

namespace rushlight {

class ShapeText {
 public:
  explicit ShapeText(Span<const int32_t> sizes);
  const char* text() const { return text_; }

 private:
  static constexpr size_t kMaxSizes = 16;  // kMaxRank; further ones are left out

  char text_[kMaxSizes * 13 + 3];
};

}  // namespace rushlight
