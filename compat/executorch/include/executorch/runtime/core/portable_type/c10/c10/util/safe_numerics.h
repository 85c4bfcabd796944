// Sums and products that tell whether they overflow.
// Where code is compiled with PyTorch, the header is PyTorch's own.
#if defined(__has_include_next) && __has_include(<ATen/core/Tensor.h>)
#if __has_include_next(<c10/util/safe_numerics.h>)
#include_next <c10/util/safe_numerics.h>
#else
#include <c10/util/safe_numerics.h>
#endif
#else
#pragma once

#include <cstdint>

namespace c10 {

template <typename T>
bool add_overflows(T a, T b, T* sum) {
  return __builtin_add_overflow(a, b, sum);
}
template <typename T>
bool mul_overflows(T a, T b, T* product) {
  return __builtin_mul_overflow(a, b, product);
}
template <typename Iterator>
bool safe_multiplies_u64(Iterator first, Iterator last, uint64_t* product) {
  uint64_t all = 1;
  bool overflows = false;
  for (; first != last; ++first) overflows |= mul_overflows<uint64_t>(all, *first, &all);
  *product = all;
  return overflows;
}

}  // namespace c10

#endif
