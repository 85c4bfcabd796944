// Pre-tokenizers: the text is split into words by a list of operations, each of which splits the
// pieces of the one before it.
#pragma once

#include "rushlight/core/span.h"
#include "rushlight/llm/tokenizer/operations.h"
#include "rushlight/llm/tokenizer/scratch.h"
#include "rushlight/llm/tokenizer/table.h"

namespace rushlight::llm {

class WordSink {
 public:
  virtual void word(StringView text) = 0;

 protected:
  ~WordSink() = default;
};

// Gives `sink` the words of `text`; `at_start` says that it is the beginning of the whole input.
void split_words(const Table& table, StringView text, bool at_start, Scratch* scratch,
                 WordSink* sink);

}  // namespace rushlight::llm
