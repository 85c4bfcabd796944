#include "rushlight/kernels/portable/rows.h"

namespace rushlight::kernels {
namespace {

template <typename T>
void gather_as(const void* from, int64_t stride, void* to, size_t n) {
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  for (size_t i = 0; i < n; ++i) out[i] = in[static_cast<int64_t>(i) * stride];
}

template <typename T>
void scatter_as(const void* from, void* to, int64_t stride, size_t n) {
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  for (size_t i = 0; i < n; ++i) out[static_cast<int64_t>(i) * stride] = in[i];
}

void scatter_elements(const void* from, void* to, int64_t stride, size_t n, size_t size) {
  switch (size) {
    case 1:
      return scatter_as<uint8_t>(from, to, stride, n);
    case 2:
      return scatter_as<uint16_t>(from, to, stride, n);
    case 4:
      return scatter_as<uint32_t>(from, to, stride, n);
    default:
      return scatter_as<uint64_t>(from, to, stride, n);
  }
}

template <typename T>
void gather_indexed_as(const void* from, const int32_t* index, void* to, size_t n) {
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  for (size_t i = 0; i < n; ++i) out[i] = in[index[i]];
}

void gather_indexed(const void* from, const int32_t* index, void* to, size_t n, size_t size) {
  switch (size) {
    case 1:
      return gather_indexed_as<uint8_t>(from, index, to, n);
    case 2:
      return gather_indexed_as<uint16_t>(from, index, to, n);
    case 4:
      return gather_indexed_as<uint32_t>(from, index, to, n);
    default:
      return gather_indexed_as<uint64_t>(from, index, to, n);
  }
}

}  // namespace

void gather_elements(const void* from, int64_t stride, void* to, size_t n, size_t size) {
  switch (size) {
    case 1:
      return gather_as<uint8_t>(from, stride, to, n);
    case 2:
      return gather_as<uint16_t>(from, stride, to, n);
    case 4:
      return gather_as<uint32_t>(from, stride, to, n);
    default:
      return gather_as<uint64_t>(from, stride, to, n);
  }
}

const void* RowReader::gather(const uint8_t* here, int64_t stride, size_t n) {
  gather_elements(here, stride, raw_, n, static_cast<size_t>(size_));
  if (same_type()) return raw_;
  convert(raw_, from_, buffer_, as_, n);
  return buffer_;
}

const void* RowReader::read_indexed(int64_t offset, const int32_t* index, size_t n) {
  gather_indexed(at(offset), index, raw_, n, static_cast<size_t>(size_));
  if (same_type()) return raw_;
  convert(raw_, from_, buffer_, as_, n);
  return buffer_;
}

void RowWriter::scatter(uint8_t* here, int64_t stride, size_t n) {
  if (stride == 1 || n == 1) {
    convert(buffer_, from_, here, to_, n);
    return;
  }
  const void* values = buffer_;
  if (from_ != to_) {
    convert(buffer_, from_, raw_, to_, n);
    values = raw_;
  }
  scatter_elements(values, here, stride, n, static_cast<size_t>(size_));
}

}  // namespace rushlight::kernels
