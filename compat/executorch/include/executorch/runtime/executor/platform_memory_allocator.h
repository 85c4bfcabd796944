// An allocator over the platform's memory (et_pal_allocate).
#pragma once

#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/platform/log.h>
#include <executorch/runtime/platform/platform.h>

namespace executorch::runtime::internal {

class PlatformMemoryAllocator final : public MemoryAllocator {
 public:
  PlatformMemoryAllocator() : MemoryAllocator(0, nullptr) {}
  PlatformMemoryAllocator(const PlatformMemoryAllocator&) = delete;
  PlatformMemoryAllocator& operator=(const PlatformMemoryAllocator&) = delete;
  ~PlatformMemoryAllocator() override { reset(); }

  void* allocate(size_t size, size_t alignment = kDefaultAlignment) override {
    if (!isPowerOf2(alignment) || size > SIZE_MAX - sizeof(Block) - alignment) return nullptr;
    auto* block = static_cast<Block*>(pal_allocate(sizeof(Block) + size + alignment));
    if (block == nullptr) return nullptr;
    block->next = blocks_;
    blocks_ = block;
    return alignPointer(block + 1, alignment);
  }
  void reset() override {
    while (blocks_ != nullptr) {
      Block* next = blocks_->next;
      pal_free(blocks_);
      blocks_ = next;
    }
  }

 private:
  struct Block {
    Block* next;
  };
  Block* blocks_ = nullptr;
};

}  // namespace executorch::runtime::internal
