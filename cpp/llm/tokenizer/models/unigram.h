// Unigram models: of all ways to make a text of pieces, the one with the greatest sum of scores.
#pragma once

#include <cstdint>
#include <vector>

#include "rushlight/core/span.h"
#include "rushlight/llm/tokenizer/scratch.h"
#include "rushlight/llm/tokenizer/table.h"

namespace rushlight::llm {

// `text` is a word of tokenizers, which adds scores in double precision; of SentencePiece a whole
// text, whose scores are added in single precision, so that it cannot be split into words.
void encode_unigram(const Table& table, StringView text, Scratch* scratch,
                    std::vector<int32_t>* out);

}  // namespace rushlight::llm
