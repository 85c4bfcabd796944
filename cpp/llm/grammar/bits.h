// Sets of tokens as bits in words of 32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rushlight::llm::grammar {

inline void set_bit(uint32_t* bits, uint32_t token) { bits[token / 32] |= 1u << (token % 32); }
inline void clear_bit(uint32_t* bits, uint32_t token) { bits[token / 32] &= ~(1u << (token % 32)); }
inline bool has_bit(const uint32_t* bits, uint32_t token) {
  return (bits[token / 32] >> (token % 32) & 1) != 0;
}
inline void add_bits(const uint32_t* added, size_t words, uint32_t* bits) {
  for (size_t i = 0; i < words; ++i) bits[i] |= added[i];
}

// The number of the lowest bit of some.
inline size_t lowest_bit(uint64_t bits) {
  size_t number = 0;
  for (size_t width = 32; width > 0; width /= 2) {
    if ((bits & ((uint64_t{1} << width) - 1)) != 0) continue;
    bits >>= width;
    number += width;
  }
  return number;
}

constexpr size_t kSetsAtOnce = 4;
// Adds the words from `begin` on of so many sets to `bits`.
void add_sets(const uint32_t* const* sets, size_t begin, size_t words, uint32_t* bits);

}  // namespace rushlight::llm::grammar
