#include "rushlight/llm/grammar/run/token_set.h"

#include <algorithm>
#include <utility>

namespace rushlight::llm::grammar {

void sort_by_counts(size_t longest, std::vector<Counted>* tokens) {
  const auto last = static_cast<uint32_t>(longest + 2);
  std::vector<uint32_t> starts(last + 2, 0);
  for (const Counted& token : *tokens) ++starts[std::min(token.counts, last) + 1];
  for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
  const auto tail = static_cast<ptrdiff_t>(starts[last]);
  std::vector<Counted> sorted(tokens->size());
  for (const Counted& token : *tokens) sorted[starts[std::min(token.counts, last)]++] = token;
  std::sort(sorted.begin() + tail, sorted.end(),
            [](const Counted& a, const Counted& b) { return a.counts < b.counts; });
  *tokens = std::move(sorted);
}

}  // namespace rushlight::llm::grammar
