// Tells complex types from real ones.
// Where code is compiled with PyTorch, the header is PyTorch's own.
#if defined(__has_include_next) && __has_include(<ATen/core/Tensor.h>)
#if __has_include_next(<torch/headeronly/util/complex_utils.h>)
#include_next <torch/headeronly/util/complex_utils.h>
#else
#include <torch/headeronly/util/complex_utils.h>
#endif
#else
#pragma once

#include <torch/headeronly/util/complex.h>

namespace c10 {

template <typename T>
struct is_complex : std::false_type {};
template <typename T>
struct is_complex<std::complex<T> > : std::true_type {};
template <typename T>
struct is_complex<complex<T> > : std::true_type {};

template <typename T>
struct scalar_value_type {
  using type = T;
};
template <typename T>
struct scalar_value_type<std::complex<T> > {
  using type = T;
};
template <typename T>
struct scalar_value_type<complex<T> > {
  using type = T;
};

}  // namespace c10

#endif
