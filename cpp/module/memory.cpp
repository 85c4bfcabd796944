#include "rushlight/module/memory.h"

#include <cstring>

#include "rushlight/module/heap.h"
#include "rushlight/platform/platform.h"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#if !defined(MAP_ANONYMOUS)
#define MAP_ANONYMOUS MAP_ANON
#endif
#if !defined(MAP_NORESERVE)
#define MAP_NORESERVE 0
#endif
#endif

namespace rushlight {
namespace {

constexpr size_t kPageAlignment = 64;
constexpr size_t kBlock = size_t{16} << 10;  // minimum size of further blocks

#if defined(__unix__) || defined(__APPLE__)
size_t page_bytes() {
  static const size_t bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}
#endif

}  // namespace

bool Pages::reserve_on_heap(size_t size) {
  void* start = heap_allocate(size, kPageAlignment);
  if (start == nullptr) return false;
  std::memset(start, 0, size);
  data_ = static_cast<uint8_t*>(start);
  size_ = size;
  is_on_heap_ = true;
  return true;
}

#if defined(__unix__) || defined(__APPLE__)

bool Pages::reserve(size_t size) {
  if (size == 0) return true;
  if (has_own_heap()) return reserve_on_heap(size);
  void* start = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return false;
  data_ = static_cast<uint8_t*>(start);
  size_ = size;
  return true;
}

Pages::~Pages() {
  if (is_on_heap_) {
    heap_free(data_);
  } else if (data_ != nullptr) {
    ::munmap(data_, size_);
  }
}

void Pages::use_small_pages() {
#if defined(MADV_NOHUGEPAGE)
  if (data_ != nullptr && !is_on_heap_) ::madvise(data_, size_, MADV_NOHUGEPAGE);
#endif
}

void Pages::use_huge_pages() {
#if defined(MADV_HUGEPAGE)
  if (data_ != nullptr && !is_on_heap_) ::madvise(data_, size_, MADV_HUGEPAGE);
#endif
}

void Pages::release(size_t begin, size_t end) {
  if (is_on_heap_) return;
  const size_t page = page_bytes();
  if (end == size_) end = (end + page - 1) / page * page;  // nothing else is on the last page
  if (begin < end) release_pages(data_ + begin, data_ + end);
}

size_t Pages::resident() const {
  if (is_on_heap_) return size_;
  const size_t page = page_bytes();
  unsigned char present[4096];
  size_t pages = 0;
  for (size_t at = 0; at < size_; at += sizeof(present) * page) {
    const size_t bytes = size_ - at < sizeof(present) * page ? size_ - at : sizeof(present) * page;
#if defined(__linux__)
    if (::mincore(data_ + at, bytes, present) != 0) return size_;
#else
    if (::mincore(data_ + at, bytes, reinterpret_cast<char*>(present)) != 0) return size_;
#endif
    for (size_t i = 0; i < (bytes + page - 1) / page; ++i) pages += present[i] & 1;
  }
  return pages * page;
}

#else

bool Pages::reserve(size_t size) { return size == 0 || reserve_on_heap(size); }

Pages::~Pages() { heap_free(data_); }

void Pages::use_small_pages() {}

void Pages::use_huge_pages() {}

void Pages::release(size_t, size_t) {}

size_t Pages::resident() const { return size_; }

#endif

HeapAllocator::~HeapAllocator() {
  while (blocks_ != nullptr) {
    Block* next = blocks_->next;
    heap_free(blocks_);
    blocks_ = next;
  }
}

// The first block is as large as the request, since that is measured. Later blocks are for
// backends, which request small pieces often.
bool HeapAllocator::grow(size_t bytes) {
  const size_t needed = bytes + sizeof(Block);
  const size_t left = limit_ - taken_;
  if (needed < bytes || needed > left) return false;
  size_t size = blocks_ == nullptr || needed > kBlock ? needed : kBlock;
  if (size > left) size = left;
  Block* block = static_cast<Block*>(heap_allocate(size));
  if (block == nullptr) return false;
  block->next = blocks_;
  blocks_ = block;
  taken_ += size;
  base_ = reinterpret_cast<uint8_t*>(block + 1);
  size_ = size - sizeof(Block);
  before_ += used_;
  used_ = 0;
  return true;
}

void* HeapBlocks::allocate(size_t bytes) {
  if (taken_ > limit_ || bytes > limit_ - taken_) return nullptr;
  void* block = heap_allocate(bytes);
  if (block != nullptr) taken_ += bytes;
  return block;
}

void HeapBlocks::free(void* block, size_t bytes) {
  heap_free(block);
  taken_ -= bytes;
}

void* HeapAllocator::allocate(size_t bytes, size_t alignment) {
  void* block = bump(bytes, alignment);
  if (block != nullptr) return block;
  if (bytes > SIZE_MAX - alignment || !grow(bytes + alignment)) return nullptr;
  return bump(bytes, alignment);
}

}  // namespace rushlight
