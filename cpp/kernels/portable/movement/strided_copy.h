// Copying a block of elements between two strided layouts: what all data-movement kernels are.
//
// Elements are bytes of a size, never numbers, so one engine serves every type. A kernel describes
// the block by its sizes and, for source and destination, a start and one stride per dimension;
// slices, permutations, flips (negative strides), broadcasts (stride 0 in the source) and windows
// are all of that form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/helpers.h"

namespace rushlight::kernels {

// A kernel may split a dimension in two or add one, hence more than a tensor's rank.
constexpr size_t kMaxCopyRank = 2 * kMaxRank;

// Sizes and strides, in elements, of a block. No two destination elements may coincide.
struct CopyBlock {
  size_t rank = 0;
  int64_t sizes[kMaxCopyRank];
  int64_t from[kMaxCopyRank];
  int64_t to[kMaxCopyRank];

  void push(int64_t size, int64_t from_stride, int64_t to_stride) {
    sizes[rank] = size;
    from[rank] = from_stride;
    to[rank] = to_stride;
    ++rank;
  }
  // Drops dimensions of size 1, orders the others by destination stride, the greatest first, and
  // merges neighbours that are one run in both. False if the block is empty.
  bool simplify();
};

// A block prepared for being copied, once or between many pairs of places.
class StridedCopy {
 public:
  StridedCopy(const CopyBlock& block, size_t element_size);

  // `from` and `to` point at the element with all indices 0 and do not overlap.
  void run(const void* from, void* to) const {
    // A constant size is a move, not a call.
    switch (run_bytes_) {
      case 0:
        if (!empty_) run_strided(static_cast<const uint8_t*>(from), static_cast<uint8_t*>(to));
        return;
      case 1:
        std::memcpy(to, from, 1);
        return;
      case 2:
        std::memcpy(to, from, 2);
        return;
      case 4:
        std::memcpy(to, from, 4);
        return;
      case 8:
        std::memcpy(to, from, 8);
        return;
      case 16:
        std::memcpy(to, from, 16);
        return;
      case 32:
        std::memcpy(to, from, 32);
        return;
      default:
        std::memmove(to, from, run_bytes_);
    }
  }

 private:
  void run_strided(const uint8_t* from, uint8_t* to) const;

  CopyBlock block_;
  size_t element_size_;
  size_t run_bytes_ = 0;  // of a block that is one run in both layouts, else 0
  bool rows_ = false;     // runs of memory long enough for memcpy
  bool empty_;
};

void strided_copy(const void* from, void* to, const CopyBlock& block, size_t element_size);
// The same, shared out.
void strided_copy(KernelContext& ctx, const void* from, void* to, CopyBlock block,
                  size_t element_size);

// The element of a tensor at `offset` elements from its start.
inline uint8_t* element_at(const Tensor& tensor, int64_t offset) {
  return static_cast<uint8_t*>(tensor.data) +
         offset * static_cast<int64_t>(element_size(tensor.dtype));
}

// Copies all of `from` (same sizes as `to`, any dim orders). Their types are equal.
void copy_all(const Tensor& from, const Tensor& to);

// The same with a change of type; can_convert (view.h) must have said that there is one.
void converting_copy(const void* from, DType from_type, void* to, DType to_type, CopyBlock block);
// The same, shared out.
void converting_copy(KernelContext& ctx, const void* from, DType from_type, void* to, DType to_type,
                     CopyBlock block);

// Gives `out` the shape and fills it from `self`, read from element `offset` on with one stride per
// dimension of the shape. Fails if out cannot have the shape or is of another type.
Status copy_as(KernelContext& ctx, const Tensor& self, int64_t offset, const int64_t* strides,
               const Shape& shape, Tensor& out);

// InvalidArgument unless the tensor (called `name` in the message) and `out` have the same type.
Status check_same_type(KernelContext& ctx, const char* name, const Tensor& tensor,
                       const Tensor& out);

}  // namespace rushlight::kernels
