// Memory for tensors without bounds: each has a block from the caller's allocator, which is
// replaced if a result does not fit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/tensor.h"

namespace rushlight {

// Blocks of memory that are freed one by one. The core has no such memory: a caller that runs
// programs with unbounded tensors provides it.
class BlockAllocator {
 public:
  // The result is at least 16-byte aligned, or nullptr if there is not enough memory.
  virtual void* allocate(size_t bytes) = 0;
  // `bytes` must be the number that was requested.
  virtual void free(void* block, size_t bytes) = 0;

 protected:
  ~BlockAllocator() = default;
};

// The blocks of one method's tensors. Tensor::grows says which tensors have one.
class TensorBlocks {
 public:
  static constexpr size_t kAlignment = 64;

  TensorBlocks() = default;
  TensorBlocks(const TensorBlocks&) = delete;
  TensorBlocks& operator=(const TensorBlocks&) = delete;

  void set_allocator(BlockAllocator* allocator) { allocator_ = allocator; }
  // To be called if views may point into blocks: replaced blocks are kept until collect().
  void keep_until_collected() { keeps_ = true; }

  // Gives a tensor that grows room for `numel` elements, in a block that is not much too large, and
  // keeps its content. Returns false and changes nothing if there is not enough memory.
  bool fit(Tensor& tensor, int64_t numel);
  // Removes the block of a tensor that grows; the tensor has no elements afterwards.
  void release(Tensor& tensor);
  // Frees the blocks that were kept.
  void collect();

 private:
  struct Header;  // stored before the data

  void give_up(void* data);
  void free_block(Header* header);

  BlockAllocator* allocator_ = nullptr;
  Header* given_up_ = nullptr;
  bool keeps_ = false;
};

}  // namespace rushlight
