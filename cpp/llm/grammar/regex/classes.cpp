#include "rushlight/llm/grammar/regex/classes.h"

#include <algorithm>

namespace rushlight::llm::grammar {

CodeSet normalized(const CodeSet& ranges) {
  CodeSet cut;
  for (const CodeRange& range : ranges) {
    if (range.low < kSurrogates.low) {
      cut.push_back({range.low, std::min(range.high, kSurrogates.low - 1)});
    }
    if (range.high > kSurrogates.high) {
      cut.push_back({std::max(range.low, kSurrogates.high + 1), std::min(range.high, kLastCode)});
    }
  }
  std::sort(cut.begin(), cut.end(), [](CodeRange a, CodeRange b) { return a.low < b.low; });
  CodeSet set;
  for (const CodeRange& range : cut) {
    if (range.low > range.high) continue;
    if (!set.empty() && range.low <= set.back().high + 1) {
      set.back().high = std::max(set.back().high, range.high);
    } else {
      set.push_back(range);
    }
  }
  return set;
}

CodeSet complement(const CodeSet& set) {
  CodeSet rest;
  uint32_t next = 0;
  for (const CodeRange& range : set) {
    if (range.low > next) rest.push_back({next, range.low - 1});
    next = range.high + 1;
  }
  if (next <= kLastCode) rest.push_back({next, kLastCode});
  return normalized(rest);
}

CodeSet any_code() { return normalized({{0, kLastCode}}); }

CodeSet digit_codes() { return {{'0', '9'}}; }

CodeSet word_codes() { return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}; }

CodeSet space_codes() {
  return {{9, 13},          {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
          {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
}

CodeSet line_end_codes() { return {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}; }

}  // namespace rushlight::llm::grammar
