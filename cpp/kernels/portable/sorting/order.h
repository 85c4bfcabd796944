// Orders elements as eager does. Every element is converted to an unsigned key that compares as the
// element does, with NaN above all numbers and both zeros equal. Keys have 32 bits for types of up
// to 4 bytes, and 64 bits for larger ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rushlight/core/tensor.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/rows.h"

namespace rushlight::kernels {

inline bool has_wide_keys(DType dtype) { return element_size(dtype) > sizeof(uint32_t); }

// The key of a value of a type in which rows are read: float, double, int32_t or int64_t.
inline uint32_t key_of(float value) {
  if (value != value) return UINT32_MAX;
  if (value == 0.0f) value = 0.0f;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits ^ (bits >> 31 != 0 ? UINT32_MAX : 0x80000000U);
}
inline uint64_t key_of(double value) {
  if (value != value) return UINT64_MAX;
  if (value == 0.0) value = 0.0;
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits ^ (bits >> 63 != 0 ? UINT64_MAX : 0x8000000000000000ULL);
}
inline uint32_t key_of(int32_t value) { return static_cast<uint32_t>(value) ^ 0x80000000U; }
inline uint64_t key_of(int64_t value) {
  return static_cast<uint64_t>(value) ^ 0x8000000000000000ULL;
}

// The keys of one row: n elements that start at `offset` and are `stride` apart.
class RowKeys {
 public:
  RowKeys(const Tensor& tensor, int64_t offset, int64_t stride, int64_t n)
      : reader_(tensor, read_type(tensor.dtype)),
        type_(read_type(tensor.dtype)),
        offset_(offset),
        stride_(stride),
        n_(n) {}

  // Calls body(index, key) for every element, in order. Keys are passed as uint64_t.
  template <typename Body>
  void each(Body body) {
    const int64_t limit = static_cast<int64_t>(kChunk);
    for (int64_t done = 0; done < n_; done += limit) {
      const int64_t n = n_ - done < limit ? n_ - done : limit;
      const void* items = reader_.read(offset_ + done * stride_, stride_, static_cast<size_t>(n));
      switch (type_) {
        case DType::Float32:
          run(static_cast<const float*>(items), done, n, body);
          break;
        case DType::Float64:
          run(static_cast<const double*>(items), done, n, body);
          break;
        case DType::Int32:
          run(static_cast<const int32_t*>(items), done, n, body);
          break;
        default:
          run(static_cast<const int64_t*>(items), done, n, body);
          break;
      }
    }
  }

 private:
  static DType read_type(DType dtype) {
    if (is_floating(dtype)) return dtype == DType::Float64 ? DType::Float64 : DType::Float32;
    return has_wide_keys(dtype) ? DType::Int64 : DType::Int32;
  }
  template <typename T, typename Body>
  static void run(const T* items, int64_t first, int64_t n, Body& body) {
    for (int64_t i = 0; i < n; ++i) body(first + i, static_cast<uint64_t>(key_of(items[i])));
  }

  RowReader reader_;
  DType type_;
  int64_t offset_;
  int64_t stride_;
  int64_t n_;
};

// An element that is moved while sorting: its key and its index in the row, in one word if both
// fit.
struct NarrowItem {
  uint64_t word;
  NarrowItem() = default;
  NarrowItem(uint64_t key, int64_t index) : word(key << 32 | static_cast<uint64_t>(index)) {}
  uint64_t key() const { return word >> 32; }
  int64_t index() const { return static_cast<int64_t>(word & UINT32_MAX); }
  bool before(const NarrowItem& other) const { return word < other.word; }
};

struct WideItem {
  uint64_t own_key;
  int64_t own_index;
  WideItem() = default;
  WideItem(uint64_t key, int64_t index) : own_key(key), own_index(index) {}
  uint64_t key() const { return own_key; }
  int64_t index() const { return own_index; }
  bool before(const WideItem& other) const {
    return own_key != other.own_key ? own_key < other.own_key : own_index < other.own_index;
  }
};

template <typename Item>
bool less_key(const Item& a, const Item& b) {
  return a.key() < b.key();
}

}  // namespace rushlight::kernels
