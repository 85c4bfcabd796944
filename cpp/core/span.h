// Views of memory that they do not own: Span<T> for arrays, StringView for text. Neither allocates,
// and neither checks an index outside of debug builds.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstring>

namespace rushlight {

template <typename T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(T* data, size_t size) : data_(data), size_(size) {}
  template <size_t N>
  constexpr Span(T (&array)[N]) noexcept : data_(array), size_(N) {}
  // A Span<T> converts to a Span<const T>.
  template <typename U>
  constexpr Span(Span<U> other) noexcept : data_(other.data()), size_(other.size()) {}

  constexpr T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  constexpr T& operator[](size_t i) const {
    assert(i < size_);
    return data_[i];
  }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

class StringView {
 public:
  constexpr StringView() = default;
  constexpr StringView(const char* data, size_t size) : data_(data), size_(size) {}
  StringView(const char* text) : data_(text), size_(std::strlen(text)) {}

  constexpr const char* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  // The length in the type that printf's `%.*s` takes.
  constexpr int len() const { return static_cast<int>(size_); }

 private:
  const char* data_ = "";
  size_t size_ = 0;
};

inline bool operator==(StringView a, StringView b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}
inline bool operator!=(StringView a, StringView b) { return !(a == b); }

// The order of bytes: negative if `a` comes first, 0 if they are equal, else positive.
inline int compare(StringView a, StringView b) {
  const int order = std::memcmp(a.data(), b.data(), a.size() < b.size() ? a.size() : b.size());
  if (order != 0 || a.size() == b.size()) return order;
  return a.size() < b.size() ? -1 : 1;
}

}  // namespace rushlight
