#include "rushlight/llm/grammar/bits.h"

namespace rushlight::llm::grammar {

// Not inline: with loops around it, GCC makes one of them all, without vectors.
void add_sets(const uint32_t* const* sets, size_t begin, size_t words, uint32_t* bits) {
  const uint32_t* const a = sets[0] + begin;
  const uint32_t* const b = sets[1] + begin;
  const uint32_t* const c = sets[2] + begin;
  const uint32_t* const d = sets[3] + begin;
  for (size_t i = 0; i < words; ++i) bits[i] |= (a[i] | b[i]) | (c[i] | d[i]);
}

}  // namespace rushlight::llm::grammar
