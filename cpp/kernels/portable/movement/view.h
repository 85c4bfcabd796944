// Reads a tensor in the order of another one: broadcasts, permutations and slices are strides.
//
// An output is always dense, so it is written from front to back. A StridedReader returns the input
// elements in that order, for any strides of the input, in runs that are as few and as long as the
// shapes allow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/helpers.h"

namespace rushlight::kernels {

// The number of elements that are processed through a buffer on the stack at a time.
#ifndef RUSHLIGHT_CHUNK
#define RUSHLIGHT_CHUNK 512
#endif
constexpr size_t kChunk = RUSHLIGHT_CHUNK;

// An element of the largest size.
struct Bytes16 {
  uint64_t words[2];
};

// Memory with any strides: one stride, in elements, for each dimension of the output for which it
// is read. A stride of 0 repeats an element, a negative one reads backwards.
struct View {
  const void* data = nullptr;  // the element with all indices 0
  DType dtype = DType::Float32;
  int64_t strides[kMaxRank];
};

// Returns the elements of a view in the memory order of an output, piece by piece.
class StridedReader {
 public:
  // `out` must have its final sizes and at least one element.
  void init(const View& view, const Tensor& out);

  // Moves to a position of the output, counted in memory order.
  void seek(int64_t position);

  // True if all elements are one dense run in the order of the output.
  bool flat() const { return dims_ == 0 || (dims_ == 1 && strides_[0] == 1); }
  // True if all elements are the same one.
  bool constant() const { return dims_ == 0 || (dims_ == 1 && strides_[0] == 0); }
  const void* data() const { return data_; }

  // Returns the next n elements as a dense run: a pointer into the view's memory if they are dense
  // there, else `buffer`, into which they are copied (n elements of the view's type).
  const void* next(size_t n, void* buffer);

 private:
  template <typename T>
  void gather(T* out, size_t n);

  const uint8_t* data_ = nullptr;
  size_t element_size_ = 0;
  size_t dims_ = 0;  // innermost first, merged if strides allow it
  int64_t sizes_[kMaxRank];
  int64_t strides_[kMaxRank];
  int64_t index_[kMaxRank];
  int64_t offset_ = 0;  // offset of index_, in elements
};

// `tensor` as broadcast to the shape of `out`. broadcast_shape must have accepted it.
View broadcast_view(const Tensor& tensor, const Tensor& out);

// The common shape of `n` tensors by the broadcasting rules. Returns InvalidArgument with the
// shapes if there is none.
Status broadcast_shape(KernelContext& ctx, const Tensor* const* tensors, size_t n, Shape* shape);

// Converts n contiguous elements; `from` and `to` may be equal. Returns false if there is no
// conversion between these types.
bool convert(const void* in, DType from, void* out, DType to, size_t n);
bool can_convert(DType from, DType to);
// The same between all real types and unsigned integers, element by element: for builds that leave
// dtypes out, where kernels may pass through one that no tensor has.
bool can_convert_slowly(DType from, DType to);
void convert_slowly(const void* in, DType from, void* out, DType to, size_t n);

// Copies the view to all of `out`, which must have its final sizes. Converts if the types differ;
// returns NotSupported if they cannot be converted.
Status copy_view(KernelContext& ctx, const View& view, Tensor& out);

}  // namespace rushlight::kernels
