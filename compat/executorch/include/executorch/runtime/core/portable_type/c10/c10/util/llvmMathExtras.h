// Bits of whole numbers, under LLVM's names.
// Where code is compiled with PyTorch, the header is PyTorch's own.
#if defined(__has_include_next) && __has_include(<ATen/core/Tensor.h>)
#if __has_include_next(<c10/util/llvmMathExtras.h>)
#include_next <c10/util/llvmMathExtras.h>
#else
#include <c10/util/llvmMathExtras.h>
#endif
#else
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace c10::llvm {

template <typename T>
size_t countLeadingZeros(T value) {
  size_t n = 0;
  for (T bit = T(1) << (std::numeric_limits<T>::digits - 1); bit != 0 && !(value & bit);
       bit = static_cast<T>(bit >> 1)) {
    ++n;
  }
  return n;
}
template <typename T>
size_t countTrailingZeros(T value) {
  size_t n = 0;
  for (; n < static_cast<size_t>(std::numeric_limits<T>::digits) && !(value >> n & 1); ++n) {
  }
  return n;
}
template <typename T>
unsigned countPopulation(T value) {
  unsigned n = 0;
  for (; value != 0; value = static_cast<T>(value & (value - 1))) ++n;
  return n;
}
constexpr bool isPowerOf2_32(uint32_t value) { return value != 0 && (value & (value - 1)) == 0; }
constexpr bool isPowerOf2_64(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }
inline unsigned Log2_32(uint32_t value) {
  return static_cast<unsigned>(31 - countLeadingZeros(value));
}
inline unsigned Log2_64(uint64_t value) {
  return static_cast<unsigned>(63 - countLeadingZeros(value));
}
inline unsigned Log2_64_Ceil(uint64_t value) {
  return static_cast<unsigned>(64 - countLeadingZeros(value - 1));
}
inline uint64_t NextPowerOf2(uint64_t value) {
  for (unsigned shift = 1; shift < 64; shift *= 2) value |= value >> shift;
  return value + 1;
}
constexpr uint64_t alignTo(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}
constexpr uint64_t divideCeil(uint64_t numerator, uint64_t denominator) {
  return (numerator + denominator - 1) / denominator;
}

}  // namespace c10::llvm

#endif
