// The memory that a module takes for its methods: zeroed pages, and an allocator that grows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/allocator.h"
#include "rushlight/core/span.h"
#include "rushlight/core/tensor_blocks.h"

namespace rushlight {

// A range of zeroed memory, 64-byte aligned. Where the system has virtual memory it is only
// reserved: a page costs memory once it is touched.
class Pages {
 public:
  Pages() = default;
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // Once per object; false if there is not so much. 0 bytes are always there.
  bool reserve(size_t size);
  // For a range that is used in parts: keeps the system from taking huge pages for it, of which a
  // small tensor would touch a whole one. Call before it is touched.
  void use_small_pages();
  // Gives back the whole pages of [begin, end): what lies there is lost, and costs no memory until
  // it is touched again. Nothing where the system cannot.
  void release(size_t begin, size_t end);
  // Bytes of its pages that are in memory; its size where the system does not tell.
  size_t resident() const;
  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  Span<uint8_t> span() const { return {data_, size_}; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// Takes further blocks from the heap when one is full, up to a limit; frees all at the end.
class HeapAllocator : public Allocator {
 public:
  HeapAllocator() = default;
  ~HeapAllocator() override;
  HeapAllocator(const HeapAllocator&) = delete;
  HeapAllocator& operator=(const HeapAllocator&) = delete;

  // The most that a block takes beyond the bytes that it was made for.
  static constexpr size_t kOverhead = 2 * kAlignment + sizeof(void*);

  // No more than `bytes` in all; SIZE_MAX at first.
  void set_limit(size_t bytes) { limit_ = bytes; }
  void* allocate(size_t bytes, size_t alignment = kAlignment) override;
  // Bytes of all blocks.
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

// Blocks of the heap, up to a limit.
class HeapBlocks final : public BlockAllocator {
 public:
  // No more than `bytes` at once; SIZE_MAX at first.
  void set_limit(size_t bytes) { limit_ = bytes; }
  void* allocate(size_t bytes) override;
  void free(void* block, size_t bytes) override;
  // Bytes of the blocks that are out.
  size_t taken() const { return taken_; }

 private:
  size_t limit_ = SIZE_MAX;
  size_t taken_ = 0;
};

}  // namespace rushlight
