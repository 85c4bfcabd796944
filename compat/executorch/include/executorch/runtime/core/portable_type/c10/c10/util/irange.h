// for (auto i : irange(n)): the numbers 0 to n - 1, or those of a range.
// Where code is compiled with PyTorch, the header is PyTorch's own.
#if defined(__has_include_next) && __has_include(<ATen/core/Tensor.h>)
#if __has_include_next(<c10/util/irange.h>)
#include_next <c10/util/irange.h>
#else
#include <c10/util/irange.h>
#endif
#else
#pragma once

#include <type_traits>

namespace c10 {
namespace detail {

template <typename T>
struct Range {
  struct Iterator {
    T value;
    T operator*() const { return value; }
    Iterator& operator++() {
      ++value;
      return *this;
    }
    bool operator==(const Iterator& other) const { return value == other.value; }
    bool operator!=(const Iterator& other) const { return value != other.value; }
  };
  T first;
  T last;
  Iterator begin() const { return {first}; }
  Iterator end() const { return {last}; }
};

}  // namespace detail

template <typename From, typename To,
          typename = std::enable_if_t<std::is_integral_v<From> && std::is_integral_v<To> > >
detail::Range<To> irange(From from, To to) {
  const To first = static_cast<To>(from);
  return {first, to < first ? first : to};
}
template <typename To, typename = std::enable_if_t<std::is_integral_v<To> > >
detail::Range<To> irange(To to) {
  return irange(To(0), to);
}

}  // namespace c10

#endif
