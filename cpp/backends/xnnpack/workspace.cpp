#include "rushlight/backends/xnnpack/workspace.h"

#include <new>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace rushlight::xnnpack {
namespace {

int this_process() {
#if defined(__unix__) || defined(__APPLE__)
  return static_cast<int>(::getpid());
#else
  return 1;
#endif
}

}  // namespace

void Workspace::begin() {
  for (Block* block = blocks_; block != nullptr; block = block->next) block->taken = false;
}

void* Workspace::take(size_t bytes) {
  Block* best = nullptr;
  for (Block* block = blocks_; block != nullptr; block = block->next) {
    const bool fits = !block->taken && block->size >= bytes;
    if (fits && (best == nullptr || block->size < best->size)) best = block;
  }
  if (best == nullptr && parent_ != nullptr) {
    Block* block = parent_->allocate_array<Block>(1);
    void* data = block != nullptr ? parent_->allocate(bytes, 64) : nullptr;
    if (data == nullptr) return nullptr;
    best = new (block) Block{data, bytes, false, blocks_};
    blocks_ = best;
  }
  if (best == nullptr) return nullptr;
  best->taken = true;
  return best->data;
}

void Workspaces::lock() {
  const int self = this_process();
  int holder = 0;
  while (!holder_.compare_exchange_weak(holder, self, std::memory_order_acquire)) {
    if (holder == self) holder = 0;  // a lock of another process, from before a fork, is taken over
  }
}

Workspace* Workspaces::acquire(const BackendInit& init) {
  lock();
  Workspace* workspace = first_;
  while (workspace != nullptr &&
         (workspace->allocator_ != init.allocator || workspace->named_data_ != init.named_data ||
          workspace->method_ != init.method.data())) {
    workspace = workspace->next_;
  }
  if (workspace == nullptr) {
    Workspace* memory = init.allocator->allocate_array<Workspace>(1);
    if (memory != nullptr) {
      workspace = new (memory) Workspace();
      workspace->allocator_ = init.allocator;
      workspace->named_data_ = init.named_data;
      workspace->method_ = init.method.data();
      workspace->next_ = first_;
      first_ = workspace;
    }
  }
  if (workspace != nullptr) ++workspace->users_;
  unlock();
  return workspace;
}

void Workspaces::release(Workspace* workspace) {
  lock();
  if (--workspace->users_ == 0) {
    Workspace** link = &first_;
    while (*link != workspace) link = &(*link)->next_;
    *link = workspace->next_;
    workspace->cache_.close();
  }
  unlock();
}

}  // namespace rushlight::xnnpack
