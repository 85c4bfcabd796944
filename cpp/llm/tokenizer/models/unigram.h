// Unigram models: of all ways to make a text of pieces, the one with the greatest sum of scores.
#pragma once

#include <cstdint>
#include <vector>

#include "rushlight/core/span.h"
#include "rushlight/llm/tokenizer/letters.h"
#include "rushlight/llm/tokenizer/scratch.h"
#include "rushlight/llm/tokenizer/table.h"

namespace rushlight::llm {

// The tokens of a word of tokenizers, which adds scores in double precision.
void encode_unigram(const Table& table, StringView word, Scratch* scratch,
                    std::vector<int32_t>* out);

// SentencePiece adds the scores of a whole text in single precision, so that near ties in a word
// depend on the score of what stands before it: `*score`, to which that of the word is added. Where
// the best score to a character is beyond kFarthestScore, it begins anew from 0 there (from its
// release 0.2.3 on), and so does every other score that was reached.
constexpr double kFarthestScore = 100000;
void encode_unigram_after(const Table& table, const Letters& letters, double* score,
                          Scratch* scratch, std::vector<int32_t>* out);

// The tokens of a word of SentencePiece that follow every score of at most the result in magnitude.
// Less than 0: no score, since the word has a tie or unknown characters.
double encode_unigram_anywhere(const Table& table, const Letters& letters, Scratch* scratch,
                               std::vector<int32_t>* out);

}  // namespace rushlight::llm
