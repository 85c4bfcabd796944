// The memory that a module allocates for its methods: zeroed pages, and an allocator that grows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/allocator.h"
#include "rushlight/core/span.h"
#include "rushlight/core/tensor_blocks.h"

namespace rushlight {

// A range of zeroed memory, 64-byte aligned. On systems with virtual memory it is only reserved: a
// page takes memory when it is first used. A program's own heap (module/heap.h) gives it at once.
class Pages {
 public:
  Pages() = default;
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // May be called once for each object. False if there is not enough memory. 0 bytes always
  // succeed.
  bool reserve(size_t size);
  // For a range that is used in parts: keeps the system from using huge pages, since a small tensor
  // would take a whole one. Must be called before the memory is used.
  void use_small_pages();
  // For a range that is read as a whole: asks the system for huge pages. Must be called before the
  // memory is used; does nothing on systems without them.
  void use_huge_pages();
  // Releases the whole pages of [begin, end): their content is lost, and they take no memory until
  // they are used again. Does nothing on systems that cannot do this.
  void release(size_t begin, size_t end);
  // The bytes of its pages that are in memory, or its size if the system does not tell.
  size_t resident() const;
  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  Span<uint8_t> span() const { return {data_, size_}; }

 private:
  bool reserve_on_heap(size_t size);

  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  bool is_on_heap_ = false;
};

// Allocates further blocks from the heap when one is full, up to a limit. Frees all at the end.
class HeapAllocator : public Allocator {
 public:
  HeapAllocator() = default;
  ~HeapAllocator() override;
  HeapAllocator(const HeapAllocator&) = delete;
  HeapAllocator& operator=(const HeapAllocator&) = delete;

  // The maximum size of a block beyond the bytes that it was allocated for.
  static constexpr size_t kOverhead = 2 * kAlignment + sizeof(void*);

  // Limits the sum of all blocks; initially SIZE_MAX.
  void set_limit(size_t bytes) { limit_ = bytes; }
  void* allocate(size_t bytes, size_t alignment = kAlignment) override;
  // The bytes of all blocks.
  size_t taken() const { return taken_; }

 private:
  struct Block {
    Block* next;
  };
  bool grow(size_t bytes);

  Block* blocks_ = nullptr;
  size_t limit_ = SIZE_MAX;
  size_t taken_ = 0;
};

// Blocks from the heap, up to a limit.
class HeapBlocks final : public BlockAllocator {
 public:
  // Limits the bytes in use at any time; initially SIZE_MAX.
  void set_limit(size_t bytes) { limit_ = bytes; }
  void* allocate(size_t bytes) override;
  void free(void* block, size_t bytes) override;
  // The bytes of the blocks in use.
  size_t taken() const { return taken_; }

 private:
  size_t limit_ = SIZE_MAX;
  size_t taken_ = 0;
};

}  // namespace rushlight
