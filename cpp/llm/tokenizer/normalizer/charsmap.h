// SentencePiece's precompiled map of characters: a double array (darts-clone) over the texts that
// are replaced, whose values are where their replacements stand.
#pragma once

#include <cstdint>

#include "rushlight/core/span.h"
#include "rushlight/llm/tokenizer/table.h"

namespace rushlight::llm {

struct Replacement {
  StringView text;
  size_t replaced = 0;  // bytes; 0: nothing is replaced
};

// The replacement of a start of `text`: of the shortest, or of the longest that has one.
Replacement find_replacement(const Table& table, StringView text, bool longest);

// Fills `plain` of the table from its other parts.
void find_plain(Table* table);

// The end of the characters from `begin` on that the map keeps. None of them is white space.
inline size_t end_of_plain(const Table& table, StringView text, size_t begin) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text.data()[i]); };
  size_t i = begin;
  while (i < text.size() && byte(i) < 0x80 && table.plain[byte(i)]) ++i;
  // With what follows, the last one may be a text that is replaced.
  return i > begin && i < text.size() && byte(i) >= 0x80 ? i - 1 : i;
}

}  // namespace rushlight::llm
