// Added tokens: those that are found in the text before the model sees it, such as "<|end|>".
#pragma once

#include "rushlight/core/span.h"
#include "rushlight/llm/tokenizer/table.h"

namespace rushlight::llm {

class AddedSink {
 public:
  virtual void between(StringView text, size_t begin) = 0;  // what stands before, between, after
  virtual void added(uint32_t token) = 0;

 protected:
  ~AddedSink() = default;
};

// Finds the leftmost, longest texts of `trie` in `text`, without special tokens unless `special`.
void find_added(const Table& table, const Trie& trie, StringView text, bool special,
                AddedSink* sink);

}  // namespace rushlight::llm
