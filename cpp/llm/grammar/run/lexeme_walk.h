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
  void clear();
  size_t bytes() const { return bytes_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Taken {  // text that can be read, whichever it is
    uint64_t kinds;
    uint32_t characters;
  };
  static constexpr size_t kFewEdges = 3;  // transitions of a state before it has a table
  // What a walk needs to know of a state.
  struct Row {
    uint32_t next_of(uint8_t byte) const {  // the state after it, or kNone
      if (table != nullptr) return (*table)[byte];
      for (const auto& [low, high, next] : few) {
        if (byte >= low && byte <= high) return next;
      }
      return kNone;
    }
    struct Transition {
      uint8_t low = 1, high = 0;
      uint32_t next = kNone;
    };
    bool accepts = false;
    uint64_t loops = 0;  // the kinds of characters that lead back to the state
    std::vector<Taken> taken;
    std::unique_ptr<std::array<uint32_t, 256>> table;  // null where there are few transitions
    std::array<Transition, kFewEdges> few;
  };
  // A node of the tree on the way to where the walk is.
  struct Step {
    uint32_t child, end;  // the next to visit, and the one after the last
    uint32_t counts;
    const Row* row;
    uint64_t known;  // as of the tree, where only such characters come before
  };
  using Bytes = std::bitset<256>;

  struct Tree {
    uint32_t root = TokenTrie::kRoot;
    bool is_rests = false;  // text of a class comes before
    uint64_t known = 0;     // the tokens of these kinds of characters alone are known
  };

  Tree take_text(uint32_t state, TokenSet* set);
  void walk(uint32_t state, const Tree& tree, TokenSet* set);
  uint32_t pass_leaves(Step* step, TokenSet* set);
  bool step_into(const Step& from, uint32_t node, uint32_t next, Step* made, TokenSet* set);
  void note_exit(uint32_t rule, uint32_t node, uint32_t counts, TokenSet* set);
  void append(uint32_t node, uint32_t counts, uint32_t state, TokenSet* set);
  void sort_by_counts(std::vector<Counted>* tokens) const;
  const Row& row_of(uint32_t state);
  uint64_t loops_of(uint32_t state) const;
  bool leads_back(uint32_t state, const ByteSequence& bytes, size_t read, uint32_t to) const;
  const Bytes& following(uint32_t rule);
  bool goes_on(uint32_t rule, const TextClass& text);

  const Automaton& automaton_;
  const TokenTrie& trie_;
  const size_t words_;
  const TextReach reach_;
  std::vector<std::unique_ptr<Row>> rows_;          // by state
  std::vector<ByteSequence> beyond_ascii_;          // all ways to write a character beyond ASCII
  std::vector<std::vector<uint32_t>> after_calls_;  // by rule: where its callers go on
  // By rule: what a text after a call may begin with, whoever called it.
  std::unordered_map<uint32_t, Bytes> following_;
  std::vector<Step> path_;  // of the walk that goes on, from the root
  TokenGatherer found_;
  size_t bytes_ = 0;
};

}  // namespace rushlight::llm::grammar
