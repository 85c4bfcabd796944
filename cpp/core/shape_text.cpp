#include "rushlight/core/shape_text.h"

#include <cstdarg>

#include "rushlight/core/message.h"

namespace rushlight {
namespace {

[[gnu::format(printf, 3, 4)]] size_t put(char* buffer, size_t size, const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  const size_t n = format_to(buffer, size, format, args);
  va_end(args);
  return n;
}

}  // namespace

ShapeText::ShapeText(Span<const int32_t> sizes) {
  size_t used = put(text_, sizeof(text_), "(");
  for (size_t i = 0; i < sizes.size(); ++i) {
    const char* format = i == 0 ? "%d" : ", %d";
    used += put(text_ + used, sizeof(text_) - used, format, static_cast<int>(sizes[i]));
  }
  put(text_ + used, sizeof(text_) - used, sizes.size() == 1 ? ",)" : ")");
}

}  // namespace rushlight
