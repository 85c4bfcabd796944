#include "rushlight/core/message.h"

#include <cstdint>
#include <cstring>

#include "rushlight/platform/platform.h"

namespace rushlight {
namespace {

// Writes text to a buffer and drops what does not fit. There is always room for the closing NUL.
class Sink {
 public:
  Sink(char* buffer, size_t size) : at_(buffer), left_(size - 1) {}

  void put(char c) {
    if (left_ == 0) return;
    *at_++ = c;
    --left_;
  }
  void put(const char* text, size_t length) {
    const size_t n = length < left_ ? length : left_;
    std::memcpy(at_, text, n);
    at_ += n;
    left_ -= n;
  }
  void close() { *at_ = '\0'; }
  const char* end() const { return at_; }

 private:
  char* at_;
  size_t left_;
};

void put_unsigned(Sink& sink, uint64_t value, unsigned base) {
  // Divided in pieces of 16 bits: small processors would need a function to divide 64.
  uint16_t pieces[4];
  for (uint16_t& piece : pieces) {
    piece = static_cast<uint16_t>(value);
    value >>= 16;
  }
  char digits[20];
  size_t n = 0;
  uint32_t left = 1;
  while (left != 0) {
    left = 0;
    uint32_t rest = 0;
    for (size_t i = 4; i-- > 0;) {
      rest = rest << 16 | pieces[i];
      pieces[i] = static_cast<uint16_t>(rest / base);
      rest %= base;
      left |= pieces[i];
    }
    digits[n++] = "0123456789abcdef"[rest];
  }
  while (n > 0) sink.put(digits[--n]);
}

void put_signed(Sink& sink, int64_t value) {
  if (value < 0) sink.put('-');
  // The magnitude of the lowest int64 does not fit in an int64.
  put_unsigned(sink, value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value),
               10);
}

// Writes a number of six digits, with `n_before_point` digits before the point and without trailing
// zeros.
void put_digits(Sink& sink, const char* digits, int n_before_point) {
  int last = 5;
  while (last >= n_before_point && digits[last] == '0') --last;
  for (int i = 0; i <= last; ++i) {
    if (i == n_before_point) sink.put('.');
    sink.put(digits[i]);
  }
}

// Like printf's %g: six significant digits. The last one may differ by one from exact rounding.
void put_double(Sink& sink, double value) {
  if (value != value) return sink.put("nan", 3);
  if (value < 0.0) {
    sink.put('-');
    value = -value;
  }
  if (value == 0.0) return sink.put('0');
  if (value > 1.7976931348623157e308) return sink.put("inf", 3);

  int exponent = 0;
  if (value < 1e-256) {  // the power below would overflow
    value *= 1e64;
    exponent -= 64;
  }
  // One division by a power, which is exact up to 1e22, rather than many by 10.
  double power = 1.0;
  if (value >= 1.0) {
    for (; value / power >= 10.0; ++exponent) power *= 10.0;
    value /= power;
  } else {
    for (; value * power < 1.0; --exponent) power *= 10.0;
    value *= power;
  }
  uint32_t number = static_cast<uint32_t>(value * 1e5 + 0.5);
  if (number >= 1000000) {
    number /= 10;
    ++exponent;
  }
  char digits[6];
  for (int i = 5; i >= 0; --i) {
    digits[i] = static_cast<char>('0' + number % 10);
    number /= 10;
  }
  if (exponent >= 0 && exponent < 6) return put_digits(sink, digits, exponent + 1);
  if (exponent < 0 && exponent >= -4) {
    sink.put("0.000", static_cast<size_t>(1 - exponent));
    int last = 5;
    while (digits[last] == '0') --last;
    return sink.put(digits, static_cast<size_t>(last) + 1);
  }
  put_digits(sink, digits, 1);
  sink.put('e');
  sink.put(exponent < 0 ? '-' : '+');
  const unsigned magnitude = static_cast<unsigned>(exponent < 0 ? -exponent : exponent);
  if (magnitude < 10) sink.put('0');
  put_unsigned(sink, magnitude, 10);
}

// Text that ends at a NUL or after `limit` bytes.
void put_text(Sink& sink, const char* text, size_t limit) {
  size_t length = 0;
  while (length < limit && text[length] != '\0') ++length;
  sink.put(text, length);
}

enum class Length { Int, Long, LongLong, Size };

const char* parse_length(const char* at, Length* length) {
  *length = Length::Int;
  if (*at == 'z') {
    *length = Length::Size;
    return at + 1;
  }
  if (*at != 'l') return at;
  *length = at[1] == 'l' ? Length::LongLong : Length::Long;
  return at + (at[1] == 'l' ? 2 : 1);
}

}  // namespace

size_t format_to(char* buffer, size_t size, const char* format, std::va_list args) {
  if (size == 0) return 0;
  Sink sink(buffer, size);
  for (const char* at = format; *at != '\0'; ++at) {
    if (*at != '%') {
      sink.put(*at);
      continue;
    }
    ++at;
    if (at[0] == '.' && at[1] == '*' && at[2] == 's') {
      const int limit = va_arg(args, int);
      put_text(sink, va_arg(args, const char*), limit < 0 ? 0 : static_cast<size_t>(limit));
      at += 2;
      continue;
    }
    Length length;
    at = parse_length(at, &length);
    switch (*at) {
      case 's':
        put_text(sink, va_arg(args, const char*), SIZE_MAX);
        break;
      case 'c':
        sink.put(static_cast<char>(va_arg(args, int)));
        break;
      case 'g':
        put_double(sink, va_arg(args, double));
        break;
      case 'd':
        put_signed(sink, length == Length::LongLong ? va_arg(args, long long)
                         : length == Length::Long   ? va_arg(args, long)
                         : length == Length::Size   ? static_cast<ptrdiff_t>(va_arg(args, size_t))
                                                    : va_arg(args, int));
        break;
      case 'u':
      case 'x':
        put_unsigned(sink,
                     length == Length::LongLong ? va_arg(args, unsigned long long)
                     : length == Length::Long   ? va_arg(args, unsigned long)
                     : length == Length::Size   ? va_arg(args, size_t)
                                                : va_arg(args, unsigned),
                     *at == 'x' ? 16 : 10);
        break;
      case '\0':
        --at;  // a single % at the end of the format
        break;
      default:
        sink.put(*at);  // %% and conversions that the formatter does not know
    }
  }
  sink.close();
  return static_cast<size_t>(sink.end() - buffer);
}

Status Message::fail(Code code, const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  const Status status = vfail(code, format, args);
  va_end(args);
  return status;
}

Status Message::vfail(Code code, const char* format, std::va_list args) {
  format_to(text_, sizeof(text_), format, args);
  mark_cut();
  return code;
}

// A text that fills the buffer is treated as truncated.
void Message::mark_cut() {
  if (std::strlen(text_) == kCapacity - 1) std::memcpy(text_ + kCapacity - 4, "...", 3);
}

void Message::prepend(const char* format, ...) {
  char prefix[kCapacity];
  std::va_list args;
  va_start(args, format);
  const size_t length = format_to(prefix, sizeof(prefix), format, args);
  va_end(args);
  const size_t room = kCapacity - 1 - length;
  const size_t kept = std::strlen(text_) < room ? std::strlen(text_) : room;
  std::memmove(text_ + length, text_, kept);
  std::memcpy(text_, prefix, length);
  text_[length + kept] = '\0';
  mark_cut();
}

void Message::append(const char* format, ...) {
  const size_t used = std::strlen(text_);
  std::va_list args;
  va_start(args, format);
  format_to(text_ + used, sizeof(text_) - used, format, args);
  va_end(args);
  mark_cut();
}

void warn(const char* format, ...) {
  char line[512];
  std::va_list args;
  va_start(args, format);
  const size_t length = format_to(line, sizeof(line), format, args);
  va_end(args);
  log_line(LogLevel::Warning, line, length);
}

}  // namespace rushlight
