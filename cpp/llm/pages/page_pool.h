// The pages in which keys and values lie: taken one at a time as sequences grow, within a limit in
// bytes, counted, and given back to the memory they came from as soon as nobody uses them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rushlight::llm {

// Where the memory of pages comes from. Called by one thread at a time.
class PageMemory {
 public:
  virtual ~PageMemory() = default;
  // Memory aligned to 64 bytes, or nullptr if there is none.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* memory, size_t bytes) = 0;
};

// The heap, or slabs of huge pages (page_slabs.h); all threads may call it.
PageMemory& heap_pages();

class PagePool {
 public:
  // `limit` is in bytes; `memory` must outlive the pool, and the pool all pages. A pool of pages of
  // 0 bytes has none.
  void open(size_t page_bytes, size_t limit, PageMemory* memory);

  // A page with one user, or nullptr if the limit is reached or the memory has none.
  uint8_t* take();
  void share(uint8_t* page);
  // One user fewer; the last one gives the page back.
  void release(uint8_t* page);
  static uint32_t users(const uint8_t* page);

  size_t page_bytes() const { return page_bytes_; }
  size_t pages() const { return in_use_; }                // in use
  size_t capacity() const { return capacity_; }           // the greatest number of pages
  size_t bytes() const { return in_use_ * page_bytes_; }  // in use
  size_t limit() const { return limit_; }
  // Whether take() refuses because of the limit, and not because the memory has none.
  bool is_full() const { return in_use_ >= capacity_; }

 private:
  size_t page_bytes_ = 0;
  size_t limit_ = 0;
  size_t capacity_ = 0;
  size_t in_use_ = 0;
  PageMemory* memory_ = nullptr;
};

}  // namespace rushlight::llm
