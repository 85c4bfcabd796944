// SentencePiece's precompiled map of characters: a double array (darts-clone) over the texts that
// are replaced, whose values are where their replacements stand.
#pragma once

#include <cstdint>

#include "rushlight/core/span.h"
#include "rushlight/llm/tokenizer/table.h"
#include "rushlight/llm/tokenizer/unicode/unicode.h"

namespace rushlight::llm {

struct Replacement {
  StringView text;
  size_t replaced = 0;  // bytes; 0: nothing is replaced
};

// The replacement of a start of `text`: of the shortest, or of the longest that has one.
Replacement find_replacement(const Table& table, StringView text, bool longest);

// The end of the characters from `begin` on that the map keeps, by their classes. None of them is a
// space. `joins(code, charsmap_class, next)` says whether a character that the map keeps by itself
// belongs together with the next one.
template <class Joins>
size_t end_of_plain(const Table& table, StringView text, size_t begin, const Joins& joins) {
  const auto at = [&](size_t i) { return read_point(text.data() + i, text.size() - i); };
  size_t i = begin;
  for (Point point = at(i);;) {
    const uint8_t own_class = table.charsmap_class(point.code);
    if ((own_class & kReplacedAlone) != 0) return i;
    const size_t next = i + point.bytes;
    if (next == text.size()) return next;
    const Point following = at(next);
    // ASCII characters do not join each other.
    const bool is_ascii = (point.code | following.code) < 0x80;
    if (!is_ascii && joins(point.code, own_class, following.code)) return i;
    i = next;
    point = following;
  }
}

}  // namespace rushlight::llm
