// How much text of the classes of a TokenTrie the states of lexemes take, whatever text it is:
// tokens of such text need no walk.
//
// A state takes `n` characters of a class if no text of so many leaves the lexeme. It is used where
// all longer texts do leave it, or there are none: then it is known of every text of the class.
#pragma once

#include <cstdint>
#include <vector>

#include "rushlight/llm/grammar/automaton/automaton.h"
#include "rushlight/llm/grammar/automaton/encoding.h"
#include "rushlight/llm/grammar/token_trie.h"

namespace rushlight::llm::grammar {

class TextReach {
 public:
  TextReach(const Automaton& automaton, const TokenTrie& trie);

  // How many characters, whichever they are, can be read, and none more: kMaxCharacters for any
  // number. 0 if that is not so.
  uint32_t characters(size_t text_class, uint32_t state) const {
    return reach_[text_class][state] & (kStays - 1u) & (kEnds - 1u);
  }
  // Whether all text of the class leads back to the state.
  bool stays(size_t text_class, uint32_t state) const {
    return (reach_[text_class][state] & kStays) != 0;
  }
  // Whether the lexeme may end there, or after some text of the class.
  bool ends(size_t text_class, uint32_t state) const {
    return (reach_[text_class][state] & kEnds) != 0;
  }
  size_t bytes() const { return reach_.size() * (reach_.empty() ? 0 : reach_[0].size()); }

 private:
  static constexpr uint8_t kStays = 0x80, kEnds = 0x40;

  std::vector<std::vector<uint8_t>> reach_;  // by class and state
};

}  // namespace rushlight::llm::grammar
