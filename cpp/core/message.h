// The text of an error, in a fixed buffer that is part of its owner (a program, a method), so that
// formatting never allocates. The formatter knows %s %.*s %c %d %u %x %ld %lu %lld %llu %zu %g and
// %%. Text that does not fit is truncated and ends in "...".
#pragma once

#include <cstdarg>
#include <cstddef>

#include "rushlight/core/status.h"

namespace rushlight {

// Writes at most `size` bytes, including the closing NUL. Returns the length of the text.
size_t format_to(char* buffer, size_t size, const char* format, std::va_list args);

class Message {
 public:
  static constexpr size_t kCapacity = 1024;

  const char* text() const { return text_; }
  bool empty() const { return text_[0] == '\0'; }
  void clear() { text_[0] = '\0'; }

  // Sets the text and returns `code`, so that a check can do `return message.fail(code, "...")`.
  [[gnu::format(printf, 3, 4)]] Status fail(Code code, const char* format, ...);
  Status vfail(Code code, const char* format, std::va_list args);
  // Inserts a formatted prefix ("forward: instruction 12 (aten::add.out): ") before the text.
  [[gnu::format(printf, 2, 3)]] void prepend(const char* format, ...);
  [[gnu::format(printf, 2, 3)]] void append(const char* format, ...);

 private:
  void mark_cut();

  char text_[kCapacity] = {0};
};

// Writes a line to the log (platform.h), for something that a user should know but that is no
// failure.
[[gnu::format(printf, 1, 2)]] void warn(const char* format, ...);

}  // namespace rushlight
