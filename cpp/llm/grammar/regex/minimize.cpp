// Moore's algorithm: states stay together while they accept alike and lead to states that are
// together. And symbols that lead to the same states from everywhere become one.
#include <algorithm>
#include <map>
#include <utility>

#include "rushlight/llm/grammar/regex/dfa.h"

namespace rushlight::llm::grammar {
namespace {

constexpr size_t kMaxWork = size_t{1} << 25;

// Numbers the classes in the order of their first states, so that the start's is 0.
size_t refined(const Dfa& dfa, std::vector<uint32_t>* classes) {
  std::map<std::vector<uint32_t>, uint32_t> numbers;
  std::vector<uint32_t> result, row;
  for (uint32_t state = 0; state < dfa.states(); ++state) {
    row.assign(1, (*classes)[state]);
    for (size_t symbol = 0; symbol < dfa.symbols(); ++symbol) {
      const uint32_t target = dfa.after(state, symbol);
      row.push_back(target == kDead ? kDead : (*classes)[target]);
    }
    const auto known = numbers.emplace(row, numbers.size());
    result.push_back(known.first->second);
  }
  *classes = std::move(result);
  return numbers.size();
}

Dfa with_joined_symbols(const Dfa& dfa) {
  std::vector<size_t> kept;
  const auto same = [&dfa](size_t a, size_t b) {
    for (uint32_t state = 0; state < dfa.states(); ++state) {
      if (dfa.after(state, a) != dfa.after(state, b)) return false;
    }
    return true;
  };
  for (size_t symbol = 0; symbol < dfa.symbols(); ++symbol) {
    if (kept.empty() || !same(kept.back(), symbol)) kept.push_back(symbol);
  }
  Dfa result;
  result.accepts = dfa.accepts;
  result.starts.clear();
  for (const size_t symbol : kept) result.starts.push_back(dfa.starts[symbol]);
  for (uint32_t state = 0; state < dfa.states(); ++state) {
    for (const size_t symbol : kept) result.next.push_back(dfa.after(state, symbol));
  }
  return result;
}

}  // namespace

Dfa minimized(const Dfa& dfa, Budget* budget) {
  Dfa joined = with_joined_symbols(dfa);
  std::vector<uint32_t> classes(joined.accepts.begin(), joined.accepts.end());
  size_t count = 0, work = 0;
  for (bool more = true; more;) {
    const size_t now = refined(joined, &classes);
    more = now != count;
    count = now;
    work += joined.next.size() + joined.states();
    const bool goes_on = budget->spend(joined.next.size() + joined.states());
    if (more && (work > kMaxWork || !goes_on)) return joined;
  }
  Dfa result;
  result.starts = joined.starts;
  for (uint32_t state = 0; state < joined.states(); ++state) {
    if (classes[state] != result.accepts.size()) continue;
    result.accepts.push_back(joined.accepts[state]);
    for (size_t symbol = 0; symbol < joined.symbols(); ++symbol) {
      const uint32_t target = joined.after(state, symbol);
      result.next.push_back(target == kDead ? kDead : classes[target]);
    }
  }
  return result;
}

}  // namespace rushlight::llm::grammar
