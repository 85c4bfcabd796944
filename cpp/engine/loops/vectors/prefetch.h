// Fetching what a loop will read: few rows use up weights faster than processors fetch them by
// themselves. Included by loops files only.
#pragma once

#include <cstdint>

namespace rushlight::engine::RL_ISA {

// As far ahead as memory needs time for: beside six rows, twice as fast as none at all.
constexpr uintptr_t kFetchAhead = 8192;

// The lines so far ahead of kBytes bytes; no address is refused.
template <int64_t kBytes>
static inline void fetch_ahead(const void* p) {
  constexpr int64_t kLine = 64;
  const auto address = reinterpret_cast<uintptr_t>(p) + kFetchAhead;
#pragma GCC unroll 8
  for (int64_t at = 0; at < kBytes; at += kLine) {
    __builtin_prefetch(reinterpret_cast<const void*>(address + static_cast<uintptr_t>(at)));
  }
}

}  // namespace rushlight::engine::RL_ISA
