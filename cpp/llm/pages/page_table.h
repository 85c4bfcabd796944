// The pages of one sequence, in the order of their positions. Tables share pages; a page that a run
// writes is made the table's own before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rushlight/delegate/kv_cache.h"
#include "rushlight/llm/pages/page_pool.h"

namespace rushlight::llm {

constexpr size_t kPageTokens = KvLayout::kPageTokens;

constexpr size_t pages_for(size_t tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }

class PageTable {
 public:
  explicit PageTable(PagePool* pool) : pool_(pool) {}
  ~PageTable() { truncate(0); }
  PageTable(const PageTable&) = delete;
  PageTable& operator=(const PageTable&) = delete;

  // Room for a sequence of so many tokens, after which the table does not allocate.
  void reserve(size_t tokens) { pages_.reserve(pages_for(tokens)); }

  // Makes positions from..to-1 writable: adds pages, and replaces shared ones by copies. False if
  // the pool has no page left; what was done until then stays, and the call can be repeated.
  bool make_writable(size_t from, size_t to);
  // Gives back the pages beyond the first `tokens` positions.
  void truncate(size_t tokens);
  // Replaces the content by the pages of the first `tokens` positions of another table.
  void share(const PageTable& other, size_t tokens);
  // Adds a page that others use, too.
  void append_shared(uint8_t* page);

  size_t size() const { return pages_.size(); }
  uint8_t* page(size_t i) const { return pages_[i]; }
  KvSequence sequence() const { return {pages_.data(), pages_.size(), nullptr}; }

 private:
  PagePool* pool_;
  std::vector<uint8_t*> pages_;
};

}  // namespace rushlight::llm
