// The tokens of one text and the pages with their keys and values. The tokens are the truth: what
// the cache lacks of them is computed when the text goes on. So a rewind, a cache that was given up
// for others' sake, and a text whose middle was dropped are all the same to a step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rushlight/llm/pages/page_table.h"

namespace rushlight::llm {

struct Sequence {
  explicit Sequence(PagePool* pool) : table(pool) {}

  // Room for so many tokens, after which the sequence does not allocate.
  void reserve(size_t context) {
    tokens.reserve(context);
    table.reserve(context);
  }
  // Keeps the cache of the first tokens only.
  void keep_cache(size_t count) {
    cached = std::min(cached, count);
    table.truncate(cached);
  }
  void truncate(size_t count) {
    tokens.resize(std::min(tokens.size(), count));
    keep_cache(count);
  }
  size_t pending() const { return tokens.size() - cached; }

  std::vector<int32_t> tokens;
  PageTable table;
  size_t cached = 0;  // tokens whose keys and values are in the pages
  uint64_t used = 0;  // the scheduler's clock when it was used last
  bool busy = false;  // a text is being generated
};

}  // namespace rushlight::llm
