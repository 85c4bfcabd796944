#include "rushlight/llm/template/syntax/literal.h"

#include <cstdint>
#include <cstring>

#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm {
namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : 99;
}

// Up to `most` digits to this base at `at`; returns how many there were.
size_t read_code(StringView text, size_t* at, size_t most, int base, uint32_t* code) {
  size_t count = 0;
  *code = 0;
  while (count < most && *at < text.size() && digit_of(text.data()[*at]) < base) {
    *code =
        *code * static_cast<uint32_t>(base) + static_cast<uint32_t>(digit_of(text.data()[(*at)++]));
    ++count;
  }
  return count;
}

// What follows a backslash.
const char* read_escape(StringView text, size_t* at, std::string* out) {
  constexpr const char* kNames = "\\'\"abfnrtv";
  constexpr const char* kMeanings = "\\'\"\a\b\f\n\r\t\v";
  const char name = text.data()[*at];
  if (name == '\n') {
    ++*at;
    return nullptr;
  }
  if (const char* entry = name != '\0' ? std::strchr(kNames, name) : nullptr) {
    out->push_back(kMeanings[entry - kNames]);
    ++*at;
    return nullptr;
  }
  uint32_t code = 0;
  if (digit_of(name) < 8) {
    read_code(text, at, 3, 8, &code);
  } else if (name == 'x' || name == 'u' || name == 'U') {
    const size_t digits = name == 'x' ? 2 : name == 'u' ? 4 : 8;
    ++*at;
    if (read_code(text, at, digits, 16, &code) != digits) {
      return "an escape in a string has too few hexadecimal digits";
    }
  } else if (name == 'N') {
    return "characters by name are not supported in a string";
  } else {
    out->push_back('\\');
    return nullptr;
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
    return "an escape in a string is no character";
  }
  char bytes[4];
  out->append(bytes, write_utf8(code, bytes));
  return nullptr;
}

}  // namespace

const char* read_literal(StringView literal, std::string* out) {
  size_t at = 0;
  while (at < literal.size()) {
    const char c = literal.data()[at++];
    if (c != '\\' || at == literal.size()) {
      out->push_back(c);
      continue;
    }
    const char* fault = read_escape(literal, &at, out);
    if (fault != nullptr) return fault;
  }
  return nullptr;
}

}  // namespace rushlight::llm
