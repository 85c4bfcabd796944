// Rows of a tensor: n elements a fixed stride apart, read and written as the type that a kernel
// computes in. Where type and stride allow, a row is used in place; else it goes through a buffer
// on the stack, so a row that is not in place has at most limit() elements at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/tensor.h"
#include "rushlight/kernels/portable/movement/view.h"

namespace rushlight::kernels {

class RowReader {
 public:
  RowReader(const Tensor& tensor, DType as)
      : data_(tensor.as<const uint8_t>()),
        size_(static_cast<int64_t>(element_size(tensor.dtype))),
        from_(tensor.dtype),
        as_(as) {}

  // The tensor has the type wanted: only the stride may ask for a buffer.
  bool same_type() const { return from_ == as_; }
  // The most elements that read() takes at once.
  size_t limit(int64_t stride) const { return same_type() && stride == 1 ? SIZE_MAX : kChunk; }
  // n elements from `offset` on, `stride` apart; valid until the next call.
  const void* read(int64_t offset, int64_t stride, size_t n) {
    const uint8_t* here = at(offset);
    if (stride == 1 || n == 1) {
      if (same_type()) return here;
      convert(here, from_, buffer_, as_, n);
      return buffer_;
    }
    return gather(here, stride, n);
  }
  // The elements at `offset` + index[i], n of them, n <= kChunk; valid until the next call.
  const void* read_indexed(int64_t offset, const int32_t* index, size_t n);
  // n elements that at() points to, in the type wanted.
  void convert_to(const uint8_t* here, void* out, size_t n) const {
    convert(here, from_, out, as_, n);
  }
  // The element at `offset`, in the tensor's own type.
  const uint8_t* at(int64_t offset) const { return data_ + offset * size_; }

 private:
  const void* gather(const uint8_t* here, int64_t stride, size_t n);

  const uint8_t* data_;
  int64_t size_;
  DType from_;
  DType as_;
  alignas(64) uint64_t raw_[kChunk];
  alignas(64) uint64_t buffer_[kChunk];
};

// Computed rows: the kernel computes into target(), and store() brings them to where they belong.
class RowWriter {
 public:
  // `from` is the type that rows are computed in. The tensor has its final sizes.
  RowWriter(const Tensor& tensor, DType from)
      : data_(tensor.as<uint8_t>()),
        size_(static_cast<int64_t>(element_size(tensor.dtype))),
        from_(from),
        to_(tensor.dtype) {}

  size_t limit(int64_t stride) const { return from_ == to_ && stride == 1 ? SIZE_MAX : kChunk; }
  // Bytes of an element in target().
  size_t computed_size() const { return element_size(from_); }
  void* target(int64_t offset, int64_t stride) {
    if (from_ == to_ && stride == 1) return data_ + offset * size_;
    return buffer_;
  }
  // The n elements in target(offset, stride) are complete.
  void store(int64_t offset, int64_t stride, size_t n) {
    if (from_ != to_ || stride != 1) scatter(data_ + offset * size_, stride, n);
  }

 private:
  void scatter(uint8_t* here, int64_t stride, size_t n);

  uint8_t* data_;
  int64_t size_;
  DType from_;
  DType to_;
  alignas(64) uint64_t raw_[kChunk];
  alignas(64) uint64_t buffer_[kChunk];
};

// The n elements of `size` bytes (1, 2, 4 or 8) from `from` on, one every `stride` elements.
void gather_elements(const void* from, int64_t stride, void* to, size_t n, size_t size);

}  // namespace rushlight::kernels
