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

}  // namespace rushlight::llm
