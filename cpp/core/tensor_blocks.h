// Memory for tensors without upper bound: each has a block from the caller's allocator, which is
// replaced when a result does not fit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/tensor.h"

namespace rushlight {

// Blocks of memory that are given back one by one. The core has no such memory: who runs programs
// with tensors without bound provides it.
class BlockAllocator {
 public:
  // At least 16-byte aligned; nullptr if there is not so much.
  virtual void* allocate(size_t bytes) = 0;
  // `bytes` must be the number that was asked for.
  virtual void free(void* block, size_t bytes) = 0;

 protected:
  ~BlockAllocator() = default;
};

// The blocks of one method's tensors. Which tensors have one says Tensor::grows.
class TensorBlocks {
 public:
  static constexpr size_t kAlignment = 64;

  TensorBlocks() = default;
  TensorBlocks(const TensorBlocks&) = delete;
  TensorBlocks& operator=(const TensorBlocks&) = delete;

  void set_allocator(BlockAllocator* allocator) { allocator_ = allocator; }
  // Views may point into blocks: those that are given up are kept until collect().
  void keep_until_collected() { keeps_ = true; }

  // Gives a tensor that grows room for `numel` elements and a block that is not much too large;
  // what lies in it stays. False, and nothing is changed, if there is no such memory.
  bool fit(Tensor& tensor, int64_t numel);
  // Takes the block of a tensor that grows; it has no elements then.
  void release(Tensor& tensor);
  // Frees what was given up.
  void collect();

 private:
  struct Header;  // in front of the data

  void give_up(void* data);
  void free_block(Header* header);

  BlockAllocator* allocator_ = nullptr;
  Header* given_up_ = nullptr;
  bool keeps_ = false;
};

}  // namespace rushlight
