// How ranges of characters are written in bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rushlight/llm/grammar/automaton/lexeme.h"
#include "rushlight/llm/grammar/regex/classes.h"

namespace rushlight::llm::grammar {

// One byte of a way to write characters; of hex digits, the values of low and high, 0 to 15.
struct BytePart {
  uint8_t low, high;
  bool is_hex;
};

inline bool operator<(const BytePart& a, const BytePart& b) {
  if (a.low != b.low) return a.low < b.low;
  if (a.high != b.high) return a.high < b.high;
  return a.is_hex < b.is_hex;
}

using ByteSequence = std::vector<BytePart>;

// Each character of the range is written by exactly one of the sequences (with JsonFree: in each
// way by one).
void append_sequences(CodeRange range, Encoding encoding, std::vector<ByteSequence>* out);

}  // namespace rushlight::llm::grammar
