// Addresses at small multiples of a stride, formed by addressing modes. Compilers would keep a
// pointer for each row and run out of registers. Included by loops files only.
#pragma once

#include <cstdint>

namespace rushlight::engine::RL_ISA {

struct StrideMultiples {
  int64_t one, three, five;

  explicit StrideMultiples(int64_t bytes) : one(bytes), three(bytes * 3), five(bytes * 5) {}
  // Call it in each iteration of a loop, so that the compiler cannot compute the multiples before
  // the loop.
  void hide() {
#if !defined(RL_NEON)  // which has registers for them
    asm("" : "+r"(one), "+r"(three), "+r"(five));
#endif
  }

  // The address I strides (0 to 6) after `base`.
  template <int64_t I>
  const char* at(const char* base) const {
    static_assert(I >= 0 && I <= 6, "no such multiple");
    if constexpr (I == 0) return base;
    if constexpr (I == 1 || I == 2 || I == 4) return base + one * I;
    if constexpr (I == 3 || I == 6) return base + three * (I / 3);
    return base + five;
  }
};

}  // namespace rushlight::engine::RL_ISA
