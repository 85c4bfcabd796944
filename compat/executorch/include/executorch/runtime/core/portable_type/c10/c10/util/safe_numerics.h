// Sums and products that tell whether they overflow.
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
