// Copies a block of elements between two strided layouts. All kernels that move data use it.
//
// Elements are bytes of a given size, never numbers, so one engine serves every type. A kernel
// describes the block by its sizes and, for both source and destination, a start and one stride per
// dimension. Slices, permutations, flips (negative strides), broadcasts (stride 0 in the source)
// and windows all have that form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/helpers.h"

namespace rushlight::kernels {

// A kernel may split or add dimensions, so this is more than a tensor's maximum rank.
constexpr size_t kMaxCopyRank = 2 * kMaxRank;

// The sizes and strides of a block, in elements. No two destination elements may be the same.
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
  // Removes dimensions of size 1, sorts the others by destination stride from the greatest to the
  // least, and merges neighbours that form one run in both layouts. Returns false if the block is
  // empty.
  bool simplify();
};

// A block that is prepared for being copied once or several times, between different addresses.
class StridedCopy {
 public:
  StridedCopy(const CopyBlock& block, size_t element_size);

  // `from` and `to` point to the element with all indices 0 and must not overlap.
  void run(const void* from, void* to) const {
    // With a constant size, memcpy becomes a move instead of a call.
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
  size_t run_bytes_ = 0;  // if the block is one run in both layouts, else 0
  bool rows_ = false;     // runs are long enough for memcpy
  bool empty_;
};

void strided_copy(const void* from, void* to, const CopyBlock& block, size_t element_size);
// The same, divided among threads.
void strided_copy(KernelContext& ctx, const void* from, void* to, CopyBlock block,
                  size_t element_size);

// The element of a tensor at `offset` elements from its start.
inline uint8_t* element_at(const Tensor& tensor, int64_t offset) {
  return static_cast<uint8_t*>(tensor.data) +
         offset * static_cast<int64_t>(element_size(tensor.dtype));
}

// Copies all of `from`, which has the sizes and the type of `to`; their dim orders may differ.
void copy_all(const Tensor& from, const Tensor& to);

// The same with a change of type; can_convert (view.h) must return true for the two types.
void converting_copy(const void* from, DType from_type, void* to, DType to_type, CopyBlock block);
// The same, divided among threads.
void converting_copy(KernelContext& ctx, const void* from, DType from_type, void* to, DType to_type,
                     CopyBlock block);

// Gives `out` the shape and fills it from `self`, starting at element `offset`, with one stride for
// each dimension of the shape. Fails if out cannot have the shape or has another type.
Status copy_as(KernelContext& ctx, const Tensor& self, int64_t offset, const int64_t* strides,
               const Shape& shape, Tensor& out);

// InvalidArgument unless the tensor (called `name` in the message) and `out` have the same type.
Status check_same_type(KernelContext& ctx, const char* name, const Tensor& tensor,
                       const Tensor& out);

}  // namespace rushlight::kernels
