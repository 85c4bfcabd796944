// Bytes that no transition of an automaton tells apart, as classes: tables by class are small, and
// what one byte of a class leads to is known of all of them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "rushlight/llm/grammar/automaton/automaton.h"
#include "rushlight/llm/grammar/token_trie.h"

namespace rushlight::llm::grammar {

// Each class is a range of bytes; they are numbered in their order.
class ByteClasses {
 public:
  explicit ByteClasses(const Automaton& automaton);

  size_t size() const { return ranges_.size(); }
  uint8_t of(uint8_t byte) const { return classes_[byte]; }
  uint8_t first(size_t number) const { return ranges_[number].first; }
  uint8_t last(size_t number) const { return ranges_[number].last; }
  uint64_t kinds(size_t number) const { return ranges_[number].kinds; }  // of its bytes

 private:
  struct Range {
    uint8_t first, last;
    uint64_t kinds;
  };

  std::array<uint8_t, 256> classes_{};
  std::vector<Range> ranges_;
};

}  // namespace rushlight::llm::grammar
