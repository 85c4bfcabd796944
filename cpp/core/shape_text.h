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
  char text_[16 * 12 + 3];  // kMaxRank sizes; further ones are truncated
};

}  // namespace rushlight
