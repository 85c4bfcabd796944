// What regular expressions and normalisers of tokenizers know of a character, from generated
// tables, and a quick reader of text that is valid UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm {

// Classes of characters, as bits.
constexpr uint16_t kLetter = 1 << 0;       // \p{L}
constexpr uint16_t kNumber = 1 << 1;       // \p{N}
constexpr uint16_t kSpace = 1 << 2;        // \s
constexpr uint16_t kMark = 1 << 3;         // \p{M}
constexpr uint16_t kUpper = 1 << 4;        // \p{Lu} or \p{Lt}
constexpr uint16_t kLower = 1 << 5;        // \p{Ll}
constexpr uint16_t kWord = 1 << 6;         // \w
constexpr uint16_t kPunctuation = 1 << 7;  // as BERT splits at it
constexpr uint16_t kControl = 1 << 8;      // that BERT removes

extern const uint16_t kClassesPage[];  // for each 64 characters, their page of kClasses
extern const uint16_t kClasses[];

inline uint16_t classes_of(uint32_t code) {
  if (code > 0x10FFFF) return 0;
  return kClasses[size_t{kClassesPage[code >> 6]} << 6 | (code & 63)];
}

// A character of text that was checked before; what is not valid all the same is read without
// leaving the text.
struct Point {
  uint32_t code;
  uint32_t bytes;
};

inline Point read_point(const char* text, size_t size) {
  const uint8_t first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return {first, 1};
  const Character character = read_utf8(text, size);
  return {character.code, character.bytes};
}

}  // namespace rushlight::llm
