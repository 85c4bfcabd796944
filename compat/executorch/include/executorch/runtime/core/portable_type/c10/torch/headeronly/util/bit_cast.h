// The bits of one type as another of the same size.
// Where code is compiled with PyTorch, the header is PyTorch's own.
#if defined(__has_include_next) && __has_include(<ATen/core/Tensor.h>)
#if __has_include_next(<torch/headeronly/util/bit_cast.h>)
#include_next <torch/headeronly/util/bit_cast.h>
#else
#include <torch/headeronly/util/bit_cast.h>
#endif
#else
#pragma once

#include <cstring>
#include <type_traits>

namespace c10 {

template <class To, class From>
To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From), "bit_cast needs types of one size");
  static_assert(std::is_trivially_copyable_v<To> && std::is_trivially_copyable_v<From>,
                "bit_cast needs types that may be copied as bytes");
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

}  // namespace c10

#endif
