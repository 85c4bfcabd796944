// Random numbers by counter: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy
// as 1, 2, 3"). The number of a draw depends on the seed, the stream and the draw's index alone, so
// that a token is drawn with the same number whatever was computed beside or before it.
#pragma once

#include <cstdint>

namespace rushlight::llm {

struct Philox {
  uint32_t words[4];
};

// The block of random words for a counter of 128 bits under a key of 64.
Philox philox(uint64_t counter_low, uint64_t counter_high, uint64_t key);

// Uniform in [0, 1), with 53 random bits.
double uniform(uint64_t seed, uint64_t stream, uint64_t index);

}  // namespace rushlight::llm
