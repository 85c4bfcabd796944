// Sets of characters as sorted ranges of code points, which neither touch nor overlap. Surrogates
// are in no set.
#pragma once

#include <cstdint>
#include <vector>

namespace rushlight::llm::grammar {

struct CodeRange {
  uint32_t low, high;  // both included
};

inline bool operator==(const CodeRange& a, const CodeRange& b) {
  return a.low == b.low && a.high == b.high;
}

using CodeSet = std::vector<CodeRange>;

constexpr uint32_t kLastCode = 0x10FFFF;
constexpr CodeRange kSurrogates = {0xD800, 0xDFFF};

// Sorts and joins the ranges, and takes the surrogates out.
CodeSet normalized(const CodeSet& ranges);
CodeSet complement(const CodeSet& set);
CodeSet any_code();

// As ECMAScript has them: \d and \w are ASCII, \s is every space of Unicode with the line ends.
CodeSet digit_codes();
CodeSet word_codes();
CodeSet space_codes();
CodeSet line_end_codes();

}  // namespace rushlight::llm::grammar
