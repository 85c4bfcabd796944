// Reading a tensor in the order of another: broadcasting, permuting and slicing are strides.
//
// An output is always dense, so it is written front to back; a StridedReader yields the input
// elements in that order, whatever the input's strides, and with as few and as long runs as the
// shapes allow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/helpers.h"

namespace rushlight::kernels {

// Elements that pass through a buffer on the stack at a time.
#ifndef RUSHLIGHT_CHUNK
#define RUSHLIGHT_CHUNK 512
#endif
constexpr size_t kChunk = RUSHLIGHT_CHUNK;

// An element of the widest type.
struct Bytes16 {
  uint64_t words[2];
};

// Memory with strides of any kind: one stride, in elements, per dimension of the output it is
// read for; 0 repeats an element, a negative one goes backwards.
struct View {
  const void* data = nullptr;  // the element at index 0 of every dimension
  DType dtype = DType::Float32;
  int64_t strides[kMaxRank];
};

// Yields the elements of a view in the memory order of an output, in pieces.
class StridedReader {
 public:
  // `out` has its final sizes and at least one element.
  void init(const View& view, const Tensor& out);

  // Goes to the element that the output has at a position, counted in memory order.
  void seek(int64_t position);

  // All elements lie in a row, as in the output.
  bool flat() const { return dims_ == 0 || (dims_ == 1 && strides_[0] == 1); }
  // All elements are the same one.
  bool constant() const { return dims_ == 0 || (dims_ == 1 && strides_[0] == 0); }
  const void* data() const { return data_; }

  // The next n elements in a row: a pointer to them where they lie, if they lie so, else `buffer`,
  // into which they are copied (n elements of the view's type).
  const void* next(size_t n, void* buffer);

 private:
  template <typename T>
  void gather(T* out, size_t n);

  const uint8_t* data_ = nullptr;
  size_t element_size_ = 0;
  size_t dims_ = 0;  // innermost first, merged where strides allow
  int64_t sizes_[kMaxRank];
  int64_t strides_[kMaxRank];
  int64_t index_[kMaxRank];
  int64_t offset_ = 0;  // of index_, in elements
};

// `tensor` as broadcast to the shape of `out` (broadcast_shape has checked that it can be).
View broadcast_view(const Tensor& tensor, const Tensor& out);

// The common shape of `n` tensors by the broadcasting rules. InvalidArgument, naming the shapes,
// if there is none.
Status broadcast_shape(KernelContext& ctx, const Tensor* const* tensors, size_t n, Shape* shape);

// Converts n contiguous elements; `from` and `to` may be equal. False if the pair is not supported.
bool convert(const void* in, DType from, void* out, DType to, size_t n);
bool can_convert(DType from, DType to);

// Writes the view into all of `out`, which has its final sizes, converting if the types differ
// (NotSupported if they cannot be).
Status copy_view(KernelContext& ctx, const View& view, Tensor& out);

}  // namespace rushlight::kernels
