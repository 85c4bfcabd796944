// What the delegates of a method share: a file of packed weights, and scratch memory, as they run
// one after the other, and what lies there is of no use between runs.
#pragma once

#include <atomic>
#include <cstddef>

#include "rushlight/backends/xnnpack/weights/packed_cache.h"
#include "rushlight/delegate/backend.h"

namespace rushlight::xnnpack {

// Blocks that each delegate takes anew when it is planned. They lie in the method's memory, which
// outlives them, and stay where they are.
class Workspace {
 public:
  // Blocks that are missing come from `allocator`; from nowhere if it is nullptr.
  void grow_from(Allocator* allocator) { parent_ = allocator; }
  // A delegate takes its blocks from here on: all are free to it.
  void begin();
  // The smallest free block of so many bytes, aligned to 64; nullptr if there is none.
  void* take(size_t bytes);

  PackedCache& cache() { return cache_; }

 private:
  friend class Workspaces;

  struct Block {
    void* data;
    size_t size;
    bool taken;
    Block* next;
  };

  Allocator* parent_ = nullptr;
  Block* blocks_ = nullptr;
  PackedCache cache_;
  // Of which method, by what its delegates are given when they are loaded.
  const Allocator* allocator_ = nullptr;
  const NamedData* named_data_ = nullptr;
  const char* method_ = nullptr;
  size_t users_ = 0;
  Workspace* next_ = nullptr;
};

// The workspaces of all methods. Methods may be loaded on several threads.
class Workspaces {
 public:
  // The one of the method that is being loaded, for one more delegate; nullptr without memory.
  Workspace* acquire(const BackendInit& init);
  void release(Workspace* workspace);

 private:
  void lock();
  void unlock() { holder_.store(0, std::memory_order_release); }

  // The process that holds the lock; 0: none. After a fork nobody gives the parent's lock back.
  std::atomic<int> holder_{0};
  Workspace* first_ = nullptr;
};

}  // namespace rushlight::xnnpack
