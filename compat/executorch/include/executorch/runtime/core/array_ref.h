// A view of elements that cannot be changed.
#pragma once

#include <executorch/runtime/platform/assert.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace executorch::runtime {

template <typename T>
class ArrayRef final {
 public:
  using iterator = const T*;
  using const_iterator = const T*;
  using size_type = size_t;
  using value_type = T;

  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T& element) : data_(&element), length_(1) {}
  constexpr ArrayRef(const T* data, size_t length) : data_(data), length_(length) {}
  constexpr ArrayRef(const T* begin, const T* end)
      : data_(begin), length_(static_cast<size_t>(end - begin)) {}
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& array) : data_(array.data()), length_(N) {}
  template <size_t N>
  constexpr ArrayRef(const T (&array)[N]) : data_(array), length_(N) {}

  constexpr iterator begin() const { return data_; }
  constexpr iterator end() const { return data_ + length_; }
  constexpr const_iterator cbegin() const { return begin(); }
  constexpr const_iterator cend() const { return end(); }
  constexpr bool empty() const { return length_ == 0; }
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return length_; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  const T& at(size_t i) const {
    ET_CHECK(i < length_);
    return data_[i];
  }
  const T& front() const { return at(0); }
  const T& back() const { return at(length_ - 1); }

  bool equals(ArrayRef other) const {
    if (length_ != other.length_) return false;
    for (size_t i = 0; i < length_; ++i) {
      if (data_[i] != other.data_[i]) return false;
    }
    return true;
  }
  ArrayRef slice(size_t from, size_t count) const {
    ET_CHECK(from <= length_ && count <= length_ - from);
    return ArrayRef(data_ + from, count);
  }
  ArrayRef slice(size_t from) const {
    ET_CHECK(from <= length_);
    return ArrayRef(data_ + from, length_ - from);
  }

 private:
  const T* data_ = nullptr;
  size_t length_ = 0;
};

template <typename T>
ArrayRef<T> makeArrayRef(const T& element) {
  return element;
}
template <typename T>
ArrayRef<T> makeArrayRef(const T* data, size_t length) {
  return ArrayRef<T>(data, length);
}
template <typename T>
ArrayRef<T> makeArrayRef(const T* begin, const T* end) {
  return ArrayRef<T>(begin, end);
}
template <typename T, size_t N>
ArrayRef<T> makeArrayRef(const std::array<T, N>& array) {
  return array;
}
template <typename T, size_t N>
ArrayRef<T> makeArrayRef(const T (&array)[N]) {
  return ArrayRef<T>(array);
}
template <typename T>
ArrayRef<T> makeArrayRef(const ArrayRef<T>& view) {
  return view;
}

template <typename T>
bool operator==(ArrayRef<T> a, ArrayRef<T> b) {
  return a.equals(b);
}
template <typename T>
bool operator!=(ArrayRef<T> a, ArrayRef<T> b) {
  return !a.equals(b);
}

using IntArrayRef = ArrayRef<int64_t>;

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::ArrayRef;
using ::executorch::runtime::IntArrayRef;
using ::executorch::runtime::makeArrayRef;
}  // namespace torch::executor
