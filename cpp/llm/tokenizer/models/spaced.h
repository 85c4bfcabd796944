// Texts of SentencePiece's unigram models. What stands between two spaces is looked up as it
// stands in the text, before it is normalised, if for the normaliser and for all pieces a space
// begins something new. The rest of the text is normalised and searched.
#pragma once

#include <cstdint>

#include "rushlight/core/span.h"
#include "rushlight/llm/tokenizer/letters.h"
#include "rushlight/llm/tokenizer/models/words.h"
#include "rushlight/llm/tokenizer/scratch.h"
#include "rushlight/llm/tokenizer/table.h"

namespace rushlight::llm {

class SpacedText {
 public:
  // Whether texts of the table may be read so.
  static bool suits(const Table& table);

  SpacedText(const Table& table, Scratch* scratch, WordEncoder* words);

  void encode(StringView text);

 private:
  bool is_space(char c) const { return static_cast<uint8_t>(c) <= ' ' && (spaces_ >> c & 1) != 0; }
  size_t next_space(StringView text, size_t i) const;
  WordEncoder::LookUp next_chunk(StringView text, size_t* end);
  bool known(const WordEncoder::LookUp& one);
  void flush(bool is_last);
  const Letters& normalize(StringView text, bool is_last);

  const Table& table_;
  Letters letters_;
  WordEncoder& words_;
  StringView waiting_;                    // of the text
  uint64_t spaces_ = uint64_t{1} << ' ';  // bits of characters
};

}  // namespace rushlight::llm
