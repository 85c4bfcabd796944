// An allocator over malloc().
#pragma once

#include <executorch/extension/memory_allocator/memory_allocator_utils.h>
#include <executorch/runtime/core/memory_allocator.h>

#include <cstdlib>
#include <vector>

namespace executorch::extension {

class MallocMemoryAllocator : public runtime::MemoryAllocator {
 public:
  MallocMemoryAllocator() : MemoryAllocator(0, nullptr) {}
  ~MallocMemoryAllocator() override { reset(); }

  void* allocate(size_t size, size_t alignment = kDefaultAlignment) override {
    if (!isPowerOf2(alignment)) return nullptr;
    const runtime::Result<size_t> wanted = utils::get_aligned_size(size, alignment);
    if (!wanted.ok()) return nullptr;
    void* memory = std::malloc(*wanted);
    if (memory == nullptr) return nullptr;
    blocks_.push_back(memory);
    return alignPointer(memory, alignment);
  }
  void reset() override {
    for (void* block : blocks_) std::free(block);
    blocks_.clear();
  }

 private:
  std::vector<void*> blocks_;
};

}  // namespace executorch::extension

namespace torch::executor::util {
using ::executorch::extension::MallocMemoryAllocator;
}  // namespace torch::executor::util
