#include "rushlight/module/debug/json.h"

namespace rushlight {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

const char* skip_space(const char* at, const char* end) {
  while (at < end && is_space(*at)) ++at;
  return at;
}

// Returns the position after the string that starts at `at`, or nullptr if it does not end.
const char* skip_string(const char* at, const char* end) {
  for (++at; at < end; ++at) {
    if (*at == '\\') {
      if (++at == end) return nullptr;
    } else if (*at == '"') {
      return at + 1;
    }
  }
  return nullptr;
}

// Returns the position after the value that starts at `at`, or nullptr if there is none. Skips
// nested values without recursion, so that any depth is safe.
const char* skip_value(const char* at, const char* end) {
  if (at == nullptr) return nullptr;
  size_t depth = 0;
  do {
    at = skip_space(at, end);
    if (at == end) return nullptr;
    if (*at == '"') {
      at = skip_string(at, end);
      if (at == nullptr) return nullptr;
    } else if (*at == '{' || *at == '[') {
      ++depth;
      ++at;
    } else if (*at == '}' || *at == ']') {
      if (depth == 0) return nullptr;
      --depth;
      ++at;
    } else if (*at == ',' || *at == ':') {
      if (depth == 0) return nullptr;
      ++at;
    } else {  // a number or a word
      while (at < end && *at != ',' && *at != '}' && *at != ']' && !is_space(*at)) ++at;
    }
  } while (depth > 0);
  return at;
}

// Returns the next item of an array or object; `at` is after its '[' or '{' or after an item.
// Returns nullptr at the end.
const char* next_item(const char* at, const char* end) {
  if (at == nullptr) return nullptr;
  at = skip_space(at, end);
  if (at < end && *at == ',') at = skip_space(at + 1, end);
  return at < end && *at != ']' && *at != '}' ? at : nullptr;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Reads the string that starts at `at`, piece by piece.
class StringReader {
 public:
  StringReader(const char* at, const char* end) : at_(at + 1), end_(end) {}

  // Reads the next characters, up to four bytes of UTF-8. Returns 0 at the end of the string.
  size_t next(char* bytes) {
    if (at_ >= end_ || *at_ == '"') return 0;
    if (*at_ != '\\') {
      bytes[0] = *at_++;
      return 1;
    }
    if (++at_ == end_) return 0;
    const char escape = *at_++;
    if (escape == 'u') return encode(read_code(), bytes);
    bytes[0] = escape == 'n'   ? '\n'
               : escape == 't' ? '\t'
               : escape == 'r' ? '\r'
               : escape == 'b' ? '\b'
               : escape == 'f' ? '\f'
                               : escape;
    return 1;
  }

 private:
  // Reads the code after "\u"; a pair of surrogates is one code.
  uint32_t read_code() {
    const uint32_t code = read_hex();
    const bool is_first = code >= 0xd800 && code < 0xdc00;
    if (!is_first || end_ - at_ < 6 || at_[0] != '\\' || at_[1] != 'u') return code;
    at_ += 2;
    return 0x10000 + ((code - 0xd800) << 10) + ((read_hex() - 0xdc00) & 0x3ff);
  }

  uint32_t read_hex() {
    uint32_t code = 0;
    for (int i = 0; i < 4 && at_ < end_ && hex_digit(*at_) >= 0; ++i) {
      code = code * 16 + static_cast<uint32_t>(hex_digit(*at_++));
    }
    return code;
  }

  static size_t encode(uint32_t code, char* bytes) {
    const size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    constexpr uint8_t kFirst[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; code >>= 6) bytes[i] = static_cast<char>(0x80 | (code & 0x3f));
    bytes[0] = static_cast<char>(kFirst[n] | code);
    return n;
  }

  const char* at_;
  const char* end_;
};

bool equals(const char* at, const char* end, StringView wanted) {
  StringReader reader(at, end);
  char bytes[4];
  size_t length = 0;
  while (const size_t n = reader.next(bytes)) {
    if (length + n > wanted.size() || StringView(bytes, n) != StringView(wanted.data() + length, n))
      return false;
    length += n;
  }
  return length == wanted.size();
}

}  // namespace

Json::Json(StringView text) : end_(text.data() + text.size()) {
  const char* at = skip_space(text.data(), end_);
  if (skip_value(at, end_) != nullptr) at_ = at;
}

Json Json::operator[](StringView key) const {
  if (!starts_with('{')) return {};
  for (const char* at = next_item(at_ + 1, end_); at != nullptr; at = next_item(at, end_)) {
    if (*at != '"') return {};
    const char* value = skip_string(at, end_);
    if (value == nullptr) return {};
    value = skip_space(value, end_);
    if (value == end_ || *value != ':') return {};
    value = skip_space(value + 1, end_);
    const char* behind = skip_value(value, end_);
    if (behind == nullptr) return {};
    if (equals(at, end_, key)) return {value, behind};
    at = behind;
  }
  return {};
}

Json Json::operator[](size_t index) const {
  if (!starts_with('[')) return {};
  for (const char* at = next_item(at_ + 1, end_); at != nullptr; at = next_item(at, end_)) {
    const char* behind = skip_value(at, end_);
    if (behind == nullptr) return {};
    if (index-- == 0) return {at, behind};
    at = behind;
  }
  return {};
}

size_t Json::size() const {
  if (!starts_with('[')) return 0;
  size_t n = 0;
  for (const char* at = next_item(at_ + 1, end_); at != nullptr; ++n) {
    at = next_item(skip_value(at, end_), end_);
  }
  return n;
}

int64_t Json::number() const {
  if (!present() || end_ - at_ > 18) return -1;
  int64_t value = 0;
  for (const char* at = at_; at < end_; ++at) {
    if (*at < '0' || *at > '9') return -1;
    value = value * 10 + (*at - '0');
  }
  return at_ < end_ ? value : -1;
}

size_t Json::text(char* buffer, size_t size) const {
  if (size == 0) return 0;
  size_t length = 0;
  if (starts_with('"')) {
    StringReader reader(at_, end_);
    char bytes[4];
    size_t n = reader.next(bytes);
    for (; n > 0 && length + n < size; n = reader.next(bytes)) {
      for (size_t i = 0; i < n; ++i) buffer[length++] = bytes[i];
    }
  }
  buffer[length] = '\0';
  return length;
}

}  // namespace rushlight
