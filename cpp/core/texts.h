// A table of texts without pointers: they stand one after the other, each with its NUL. Pointers
// would take more room than the texts, twice so in a library that is moved when it is loaded.
#pragma once

#include <cstddef>
#include <cstring>

namespace rushlight {

// Text `n` of a table, which must have more than n.
[[gnu::noinline]] inline const char* text_at(const char* texts, size_t n) {
  for (; n > 0; --n) texts += std::strlen(texts) + 1;
  return texts;
}

}  // namespace rushlight
