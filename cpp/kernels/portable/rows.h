// Rows of a tensor: n elements with a fixed stride, read and written in the computing type of a
// kernel. If type and stride allow it, a row is used in place. Otherwise it is copied to a buffer
// on the stack, and may have at most limit() elements at a time.
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

  // True if the tensor has the requested type, so that only the stride may need a buffer.
  bool same_type() const { return from_ == as_; }
  // The maximum number of elements that read() takes at once.
  size_t limit(int64_t stride) const { return same_type() && stride == 1 ? SIZE_MAX : kChunk; }
  // Returns n elements from `offset` on, `stride` apart. The result is valid until the next call.
  const void* read(int64_t offset, int64_t stride, size_t n) {
    const uint8_t* here = at(offset);
    if (stride == 1 || n == 1) {
      if (same_type()) return here;
      convert(here, from_, buffer_, as_, n);
      return buffer_;
    }
    return gather(here, stride, n);
  }
  // Returns the n elements at `offset` + index[i], n <= kChunk. The result is valid until the next
  // call.
  const void* read_indexed(int64_t offset, const int32_t* index, size_t n);
  // Converts the n elements that at() points to, to the requested type.
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

// Writes rows: the kernel computes into target(), and store() copies the result to the tensor if
// necessary.
class RowWriter {
 public:
  // `from` is the type in which rows are computed. The tensor must have its final sizes.
  RowWriter(const Tensor& tensor, DType from)
      : data_(tensor.as<uint8_t>()),
        size_(static_cast<int64_t>(element_size(tensor.dtype))),
        from_(from),
        to_(tensor.dtype) {}

  size_t limit(int64_t stride) const { return from_ == to_ && stride == 1 ? SIZE_MAX : kChunk; }
  // The size of an element in target(), in bytes.
  size_t computed_size() const { return element_size(from_); }
  void* target(int64_t offset, int64_t stride) {
    if (from_ == to_ && stride == 1) return data_ + offset * size_;
    return buffer_;
  }
  // Stores the n elements that were computed into target(offset, stride).
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

// Gathers n elements of `size` bytes (1, 2, 4 or 8), one every `stride` elements of `from`.
void gather_elements(const void* from, int64_t stride, void* to, size_t n, size_t size);

}  // namespace rushlight::kernels
