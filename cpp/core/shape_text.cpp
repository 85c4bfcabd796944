#include "rushlight/core/shape_text.h"

namespace rushlight {
namespace {

// Writes a number and returns the place behind it; 11 bytes are enough.
char* put(char* at, int32_t number) {
  char digits[10];
  size_t n = 0;
  const bool is_negative = number < 0;
  uint32_t rest = is_negative ? 0 - static_cast<uint32_t>(number) : static_cast<uint32_t>(number);
  do {
    digits[n++] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  if (is_negative) *at++ = '-';
  while (n > 0) *at++ = digits[--n];
  return at;
}

}  // namespace

ShapeText::ShapeText(Span<const int32_t> sizes) {
  char* at = text_;
  *at++ = '(';
  for (size_t i = 0; i < sizes.size() && i < kMaxSizes; ++i) {
    if (i > 0) {
      *at++ = ',';
      *at++ = ' ';
    }
    at = put(at, sizes[i]);
  }
  if (sizes.size() == 1) *at++ = ',';
  *at++ = ')';
  *at = '\0';
}

}  // namespace rushlight
