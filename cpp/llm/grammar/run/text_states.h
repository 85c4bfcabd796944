// What is known of the transitions of a state: which states text of a class leads to.
#pragma once

#include <cstdint>
#include <vector>

#include "rushlight/llm/grammar/automaton/automaton.h"
#include "rushlight/llm/grammar/token_trie.h"

namespace rushlight::llm::grammar {

struct TextStates {
  static constexpr size_t kMost = 64;

  uint32_t from = 0;  // the state before the text
  // After some text of the class. In a chain, by how many characters there are: after more than it
  // has, the last one if it `stays`, and none otherwise.
  std::vector<uint32_t> states;
  bool is_chain = false;
  bool stays = false;
  bool is_known = true;  // false: there are more than kMost
};

// From `state`, a lexeme's. Spaces beyond ASCII, and what ends lines there, are taken for text of
// the class if other characters beyond ASCII are: there may be states that none leads to.
TextStates text_states(const Automaton& automaton, uint32_t state, const TextClass& text);

}  // namespace rushlight::llm::grammar
