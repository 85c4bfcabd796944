#include "rushlight/llm/pages/page_table.h"

#include <cstring>

namespace rushlight::llm {

bool PageTable::make_writable(size_t from, size_t to) {
  pages_.reserve(pages_for(to));  // before a page is taken, which would be lost
  for (size_t i = from / kPageTokens; i < pages_for(to); ++i) {
    const bool exists = i < pages_.size();
    if (exists && PagePool::users(pages_[i]) == 1) continue;
    uint8_t* page = pool_->take();
    if (page == nullptr) return false;
    if (!exists) {
      pages_.push_back(page);
      continue;
    }
    // A page whose first position is written is written before it is read.
    if (i * kPageTokens < from) std::memcpy(page, pages_[i], pool_->page_bytes());
    pool_->release(pages_[i]);
    pages_[i] = page;
  }
  return true;
}

void PageTable::truncate(size_t tokens) {
  for (; pages_.size() > pages_for(tokens); pages_.pop_back()) pool_->release(pages_.back());
}

void PageTable::share(const PageTable& other, size_t tokens) {
  truncate(0);
  for (size_t i = 0; i < pages_for(tokens); ++i) append_shared(other.pages_[i]);
}

void PageTable::append_shared(uint8_t* page) {
  pages_.push_back(page);
  pool_->share(page);
}

}  // namespace rushlight::llm
