// WordPiece: the longest piece that a word begins with, then the longest continuing pieces.
#pragma once

#include <cstdint>
#include <vector>

#include "rushlight/core/span.h"
#include "rushlight/llm/tokenizer/table.h"

namespace rushlight::llm {

void encode_word_piece(const Table& table, StringView word, std::vector<int32_t>* out);

}  // namespace rushlight::llm
