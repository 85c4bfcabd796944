// The tokens that go on from a state of a lexeme, as far as they stay in it: the text of a class at
// once, and the other tokens by a walk of their tree.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "rushlight/llm/grammar/run/text_reach.h"
#include "rushlight/llm/grammar/run/token_set.h"

namespace rushlight::llm::grammar {

class LexemeWalk {
 public:
  LexemeWalk(const Automaton& automaton, const TokenTrie& trie, size_t words);

  // `set->is_counted` says whether counts are to be noted.
  void find(uint32_t state, TokenSet* set);
  // Whether the byte leads back to the state.
  bool loops(uint32_t state, uint8_t byte) { return row_of(state).next[byte] == state; }
  void clear();
  size_t bytes() const { return bytes_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Row {
    std::array<uint32_t, 256> next;  // by byte: the state after it, or kNone
    uint64_t loops = 0;              // the kinds of characters that change nothing
  };
  struct Following {  // what a text after a call of a rule may begin with, whoever called it
    std::bitset<256> bytes;
    uint64_t kinds = 0;  // of characters
  };
  struct Tree {
    uint32_t root = 0;                            // of all tokens, or of what follows a class
    const std::vector<PartNode>* part = nullptr;  // of the tree of all tokens
  };

  Tree take_text(uint32_t state, TokenSet* set);
  void walk(uint32_t state, const Tree& tree, TokenSet* set);
  void append(uint32_t node, uint32_t counts, uint32_t state, TokenSet* set);
  void sort_by_counts(std::vector<Counted>* tokens) const;
  const Row& row_of(uint32_t state);
  uint64_t loops_of(uint32_t state, const Row& row);
  bool leads_back(uint32_t state, const ByteSequence& bytes, size_t read, uint32_t to);
  const Following& following(uint32_t rule);
  bool goes_on(uint32_t rule, const TextClass& text);

  const Automaton& automaton_;
  const TokenTrie& trie_;
  const size_t words_;
  const TextReach reach_;
  std::vector<std::unique_ptr<Row>> rows_;             // by state
  std::vector<ByteSequence> beyond_ascii_;             // all ways to write a character beyond ASCII
  std::vector<std::vector<uint32_t>> after_calls_;     // by rule: where its callers go on
  std::unordered_map<uint32_t, Following> following_;  // by rule
  // Of the walk that goes on, by depth: the transitions, the counts, and the node of the tree if
  // the call may end there, and it is not known whether a token goes on.
  std::vector<const Row*> rows_path_;
  std::vector<uint32_t> counts_path_;
  std::vector<uint32_t> exits_path_;
  size_t bytes_ = 0;
};

}  // namespace rushlight::llm::grammar
