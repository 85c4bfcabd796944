// What attention over pages reads next, fetched while it computes. Processors fetch runs of lines
// on their own only once they are read, and no further than 4 KiB; and a burst of fetches makes the
// loads behind it wait. So loops fetch an even share in each of their iterations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

// Bytes `at` to `end` of each page. Lines of several pages in turns arrive sooner than the same
// lines page by page. Pages may repeat, and any address is allowed.
struct PagesAhead {
  static constexpr int64_t kPages = 4;
  const uint8_t* pages[kPages];
  size_t at, end;

  // The share that parts `first` to `last` have of all.
  PagesAhead share(int64_t first, int64_t last, int64_t parts) const {
    PagesAhead part = *this;
    part.at = at + (end - at) * static_cast<size_t>(first) / static_cast<size_t>(parts);
    part.end = at + (end - at) * static_cast<size_t>(last) / static_cast<size_t>(parts);
    return part;
  }
};

// What is ahead, fetched in even shares of so many bytes of each page. Of no shares it is none.
struct AheadShares {
  PagesAhead ahead;
  size_t share, due;
};
static RL_INLINE AheadShares shares_of(const PagesAhead& ahead, int64_t shares) {
  const size_t n = shares > 0 ? static_cast<size_t>(shares) : 1;
  return {ahead, (ahead.end - ahead.at + n - 1) / n, ahead.at};
}
static RL_INLINE void fetch(AheadShares& shares) {
  constexpr size_t kLine = 64;
  shares.due += shares.share;
  for (; shares.ahead.at < shares.due; shares.ahead.at += kLine) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < PagesAhead::kPages; ++i) {
      __builtin_prefetch(shares.ahead.pages[i] + shares.ahead.at);
    }
  }
}

}  // namespace rushlight::engine
