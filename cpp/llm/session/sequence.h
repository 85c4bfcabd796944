// The tokens of one text and the pages with their keys and values. The tokens are the truth: what
// the cache lacks of them is computed when the text goes on. So a rewind, a cache that was given up
// for others' sake, and a text whose middle was dropped are all the same to a step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "rushlight/llm/adapters/adapter.h"
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
    is_foreign = is_foreign && cached > 0;
  }
  void truncate(size_t count) {
    tokens.resize(std::min(tokens.size(), count));
    keep_cache(count);
  }
  // Drops tokens in the middle; the cache of what stood before them is kept.
  void erase(size_t first, size_t count) {
    const auto from = tokens.begin() + static_cast<std::ptrdiff_t>(first);
    tokens.erase(from, from + static_cast<std::ptrdiff_t>(count));
    keep_cache(first);
  }
  // Becomes the same text, and shares its cache.
  void copy_from(const Sequence& other) {
    tokens.assign(other.tokens.begin(), other.tokens.end());
    table.share(other.table, other.cached);
    cached = other.cached;
    is_foreign = other.is_foreign;
    adapter = other.adapter;
  }
  size_t pending() const { return tokens.size() - cached; }
  // What a step is given of it.
  KvSequence lent() const {
    KvSequence sequence = table.sequence();
    if (adapter != nullptr) sequence.adapter = &adapter->weights();
    return sequence;
  }

  std::vector<int32_t> tokens;
  PageTable table;
  size_t cached = 0;  // tokens whose keys and values are in the pages
  uint64_t used = 0;  // the scheduler's clock when it was used last
  bool busy = false;  // a text is being generated
  // Pages came from a file, and may not be what the model computes: no other text may use them.
  bool is_foreign = false;
  // What its tokens are computed with; nullptr: the model alone. It does not change while there are
  // tokens: their keys and values depend on it.
  std::shared_ptr<const Adapter> adapter;
};

}  // namespace rushlight::llm
