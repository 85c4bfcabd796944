// Byte pair encoding: the symbols of a word are merged in the order of the merges' ranks, the
// leftmost first among equals.
#pragma once

#include <cstdint>
#include <vector>

#include "rushlight/core/span.h"
#include "rushlight/llm/tokenizer/scratch.h"
#include "rushlight/llm/tokenizer/table.h"

namespace rushlight::llm {

void encode_bpe(const Table& table, StringView word, Scratch* scratch, std::vector<int32_t>* out);

// The tokens of a character that the vocabulary has not: those of its bytes, the unknown token, or
// none.
void append_unknown(const Table& table, StringView character, std::vector<int32_t>* out);

}  // namespace rushlight::llm
