// A view of elements that can be changed.
#pragma once

#include <executorch/runtime/platform/assert.h>

#include <cstddef>
#include <cstdint>

namespace executorch::runtime {

template <typename T>
class Span final {
 public:
  using value_type = T;
  using iterator = T*;
  using size_type = size_t;

  constexpr Span() noexcept = default;
  constexpr Span(T* data, size_t length) : data_(data), length_(length) {}
  constexpr Span(T* begin, T* end) : data_(begin), length_(static_cast<size_t>(end - begin)) {}
  template <size_t N>
  constexpr Span(T (&array)[N]) : data_(array), length_(N) {}
  explicit constexpr Span(T& element) : data_(&element), length_(1) {}

  iterator begin() const noexcept { return data_; }
  iterator end() const noexcept { return data_ + length_; }
  constexpr bool empty() const noexcept { return length_ == 0; }
  constexpr T* data() const noexcept { return data_; }
  constexpr size_t size() const noexcept { return length_; }
  constexpr T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  size_t length_ = 0;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::Span;
}  // namespace torch::executor
