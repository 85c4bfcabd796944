// What regular expressions and normalisers of tokenizers know of a character, from generated
// tables, and a quick reader of text that is valid UTF-8.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm {

// Classes of characters, as bits.
constexpr uint16_t kLetter = 1 << 0;                 // \p{L}
constexpr uint16_t kNumber = 1 << 1;                 // \p{N}
constexpr uint16_t kSpace = 1 << 2;                  // \s
constexpr uint16_t kMark = 1 << 3;                   // \p{M}
constexpr uint16_t kUpper = 1 << 4;                  // \p{Lu} or \p{Lt}
constexpr uint16_t kLower = 1 << 5;                  // \p{Ll}
constexpr uint16_t kWord = 1 << 6;                   // \w
constexpr uint16_t kPunctuation = 1 << 7;            // as BERT splits at it
constexpr uint16_t kControl = 1 << 8;                // that BERT removes
constexpr uint16_t kAccent = 1 << 9;                 // that StripAccents removes
constexpr uint16_t kNonspacing = 1 << 10;            // that BERT removes from decomposed text
constexpr uint16_t kMayCompose = 1 << 11;            // may change in NFC, by itself or with others
constexpr uint16_t kMayComposeCompatible = 1 << 12;  // in NFKC
constexpr uint16_t kJoins = 1 << 13;                 // continues the grapheme before it
constexpr uint16_t kBreaks = 1 << 14;                // is a grapheme by itself
constexpr uint16_t kPrepends = 1 << 15;              // the grapheme goes on after it

// Tables with a page for each 64 characters.
extern const uint16_t kClassesPage[], kClasses[];
// Numbers of the pre-tokenizer Digits, of a newer Unicode, that kNumber does not have; sorted.
extern const uint32_t kNewerNumberCount, kNewerNumbers[];
extern const uint16_t kCombiningPage[];
extern const uint8_t kCombining[];
// Mappings: the index of a character's text, whose codes are from start to next start. 0:
// unchanged.
extern const uint16_t kLoweredPage[], kLowered[], kLoweredStarts[];
extern const uint16_t kCanonicalPage[], kCanonical[], kCanonicalStarts[];
extern const uint16_t kCompatiblePage[], kCompatible[], kCompatibleStarts[];
extern const uint32_t kLoweredCodes[], kCanonicalCodes[], kCompatibleCodes[];
// Triples, sorted: the first character, the second, what they compose to.
extern const uint32_t kCompositions, kComposition[];

template <class T>
T look_up(const uint16_t* pages, const T* values, uint32_t code) {
  return code > 0x10FFFF ? T() : values[size_t{pages[code >> 6]} << 6 | (code & 63)];
}

// The first pages of classes are those of ASCII.
inline uint16_t classes_of(uint32_t code) {
  return code < 0x80 ? kClasses[code] : look_up(kClassesPage, kClasses, code);
}
inline bool is_digit(uint32_t code) {
  if ((classes_of(code) & kNumber) != 0) return true;
  const uint32_t* end = kNewerNumbers + kNewerNumberCount;
  return code >= kNewerNumbers[0] && std::binary_search(kNewerNumbers, end, code);
}
inline uint8_t combining_class(uint32_t code) { return look_up(kCombiningPage, kCombining, code); }

// A character of text that was checked before. Bytes that are not valid all the same are read as
// some character, without leaving the text.
struct Point {
  uint32_t code;
  uint32_t bytes;
};

inline Point read_point(const char* text, size_t size) {
  const uint8_t first = static_cast<uint8_t>(text[0]);
  const auto next = [&](size_t i) { return static_cast<uint8_t>(text[i]) & 0x3Fu; };
  if (first < 0x80) return {first, 1};
  if (first < 0xE0 && size >= 2) return {(first & 0x1Fu) << 6 | next(1), 2};
  if (first < 0xF0 && size >= 3) return {(first & 0xFu) << 12 | next(1) << 6 | next(2), 3};
  if (size < 4) return {kReplacement, 1};
  return {(first & 0x7u) << 18 | next(1) << 12 | next(2) << 6 | next(3), 4};
}

}  // namespace rushlight::llm
