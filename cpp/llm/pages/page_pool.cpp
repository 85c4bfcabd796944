#include "rushlight/llm/pages/page_pool.h"

#include <mutex>
#include <new>

#include "rushlight/llm/pages/page_slabs.h"

namespace rushlight::llm {
namespace {

constexpr size_t kAlignment = 64;

// What stands before each page, so that a page is found by its address alone.
struct alignas(kAlignment) Header {
  uint32_t users;
};

Header* header_of(const uint8_t* page) {
  return reinterpret_cast<Header*>(const_cast<uint8_t*>(page) - sizeof(Header));
}

// Serves all runners of a process.
class HeapPages final : public PageMemory {
 public:
  void* allocate(size_t bytes) override {
    if (!PageSlabs::takes(bytes)) {
      return ::operator new(bytes, std::align_val_t(kAlignment), std::nothrow);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    return slabs_.allocate(bytes);
  }
  void free(void* memory, size_t bytes) override {
    if (!PageSlabs::takes(bytes)) return ::operator delete(memory, std::align_val_t(kAlignment));
    const std::lock_guard<std::mutex> lock(mutex_);
    slabs_.free(memory);
  }

 private:
  std::mutex mutex_;
  PageSlabs slabs_;
};

}  // namespace

PageMemory& heap_pages() {
  static auto* const pages = new HeapPages;  // runners may outlive static objects
  return *pages;
}

void PagePool::open(size_t page_bytes, size_t limit, PageMemory* memory) {
  page_bytes_ = page_bytes;
  limit_ = limit;
  capacity_ = page_bytes > 0 ? limit / page_bytes : 0;
  memory_ = memory;
}

uint8_t* PagePool::take() {
  if (is_full()) return nullptr;
  void* memory = memory_->allocate(sizeof(Header) + page_bytes_);
  if (memory == nullptr) return nullptr;
  ++in_use_;
  auto* header = new (memory) Header{1};
  return reinterpret_cast<uint8_t*>(header + 1);
}

void PagePool::share(uint8_t* page) { ++header_of(page)->users; }

void PagePool::release(uint8_t* page) {
  Header* header = header_of(page);
  if (--header->users > 0) return;
  --in_use_;
  memory_->free(header, sizeof(Header) + page_bytes_);
}

uint32_t PagePool::users(const uint8_t* page) { return header_of(page)->users; }

}  // namespace rushlight::llm
