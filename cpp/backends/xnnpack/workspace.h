// What the delegates of a method share: a file of packed weights, and scratch memory, since they
// run one after the other and keep nothing there between runs.
#pragma once

#include <atomic>
#include <cstddef>

#include "rushlight/backends/xnnpack/weights/packed_cache.h"
#include "rushlight/delegate/backend.h"

namespace rushlight::xnnpack {

// Blocks of scratch that each delegate takes again for each plan. They lie in the method's memory,
// which outlives them, and do not move.
class Workspace {
 public:
  // New blocks come from `allocator`; if it is nullptr, there are no new ones.
  void grow_from(Allocator* allocator) { parent_ = allocator; }
  // Makes all blocks free, for the next delegate.
  void begin();
  // The smallest free block with at least this many bytes, aligned to 64; nullptr if there is none.
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
  // The method, identified by what its delegates get at load.
  const Allocator* allocator_ = nullptr;
  const NamedData* named_data_ = nullptr;
  const char* method_ = nullptr;
  size_t users_ = 0;
  Workspace* next_ = nullptr;
};

// The workspaces of all methods. Methods may be loaded on several threads.
class Workspaces {
 public:
  // The workspace of the method that is being loaded, for one more delegate; nullptr if memory ran
  // out.
  Workspace* acquire(const BackendInit& init);
  void release(Workspace* workspace);

 private:
  void lock();
  void unlock() { holder_.store(0, std::memory_order_release); }

  // The process that holds the lock; 0 for none. After a fork, nothing in the child releases the
  // parent's lock.
  std::atomic<int> holder_{0};
  Workspace* first_ = nullptr;
};

}  // namespace rushlight::xnnpack
