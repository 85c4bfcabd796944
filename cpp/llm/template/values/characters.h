// What Python's strings know of characters, and the operations of strings that depend on it. Texts
// are valid UTF-8.
#pragma once

#include <cstdint>
#include <string>

#include "rushlight/core/span.h"
#include "rushlight/llm/template/values/text.h"

namespace rushlight::llm {

enum CharacterFlag : uint8_t {
  kPrintable = 1,
  kAlphabetic = 2,
  kDecimal = 4,
  kDigit = 8,
  kNumeric = 16,
  kUppercase = 32,
  kLowercase = 64,
};

enum class Case : uint8_t { Upper, Lower, Title };

uint8_t character_flags(uint32_t code);
// Python's str.isspace and the \s of its regular expressions.
bool is_space(uint32_t code);

// Walks over the characters of a text.
class Characters {
 public:
  explicit Characters(StringView text) : text_(text) {}
  bool at_end() const { return at_ >= text_.size(); }
  size_t at() const { return at_; }
  // The character here; walks on.
  uint32_t next();

 private:
  StringView text_;
  size_t at_ = 0;
};

size_t count_characters(StringView text);
// The byte at which the character of this index begins; the size if there are no more.
size_t byte_of_character(StringView text, size_t index);

// The first place of `part` from `from` on; npos if there is none. Takes linear time.
size_t find_bytes(StringView text, StringView part, size_t from = 0);

void append_case(uint32_t code, Case to, std::string* out);
std::string change_case(StringView text, Case to);

// The bounds in bytes that are left when white space, or any of `characters`, is taken off.
TextRange stripped(StringView text, bool left, bool right, const StringView* characters = nullptr);

}  // namespace rushlight::llm
