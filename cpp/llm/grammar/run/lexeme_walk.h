// The tokens that go on from a state of a lexeme, as far as they stay in it: the text of a class at
// once, and the other tokens by walks of their trees.
//
// Of tokens that leave the class, what follows the text is walked alone, where the states that the
// text can lead to do not differ in it: all of them, or those after so many characters. Only the
// others are walked from their start.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "rushlight/llm/grammar/run/text_reach.h"
#include "rushlight/llm/grammar/run/text_states.h"
#include "rushlight/llm/grammar/run/token_set.h"

namespace rushlight::llm::grammar {

class LexemeWalk {
 public:
  LexemeWalk(const Automaton& automaton, const TokenTrie& trie, size_t words);

  // `set->is_counted` says whether counts are to be noted.
  void find(uint32_t state, TokenSet* set);
  // Another state that takes mostly the same tokens, as it differs in few first bytes; or `state`.
  uint32_t similar(uint32_t state);
  // Makes the set of `like`, uncounted, one of `state`, which is similar.
  void adapt(uint32_t state, uint32_t like, TokenSet* set);
  // Whether all tokens below a node can be read from a state, and its call goes on after them; it
  // may take `left` more counts.
  bool takes_below(uint32_t state, uint64_t left, uint32_t node);
  void clear();
  size_t bytes() const { return bytes_; }
  // Nodes of the trees that walks have come to.
  uint64_t visited() const { return visited_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kCounts = 1u << 31;  // of a transition: it counts

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
    bool is_alike = false;  // all small letters lead to the same, as do all capitals and digits
    uint64_t loops = 0;     // the kinds of characters that lead back to the state
    uint64_t dead = 0;      // those that lead nowhere
    std::vector<Taken> taken;
    std::unique_ptr<std::array<uint32_t, 256>> table;  // null where there are few transitions
    std::array<Transition, kFewEdges> few;
  };
  // A node of the tree on the way to where the walk is.
  struct Step {
    uint32_t child, end;  // the next to visit, and the one after the last
    uint32_t counts;
    const Row* row;
    bool is_text;  // of `leaving_`
  };
  using Bytes = std::bitset<256>;

  // Tokens that begin with text, all tokens of such text alone being known.
  struct Leaving {
    const TextClass* text = nullptr;  // of a class
    uint64_t walked = UINT64_MAX;     // the kinds of characters by which tokens leave it
    uint64_t done = 0;                // the kinds of others
    // Or text that leads back to a state, of kinds of which all characters do; `sought` are the
    // kinds of which a token must have one, so that it has to be found out.
    uint32_t state = kNone;
    uint64_t loops = 0, sought = UINT64_MAX;
  };

  struct AfterByte {  // tokens of one of these bytes, and then text of a class
    const TextClass* text = nullptr;
    bool first[256] = {};
  };

  bool take_loops(uint32_t state, TokenSet* set);
  const TextClass* take_text(uint32_t state, bool* splits, TokenSet* set);
  AfterByte take_text_after_byte(uint32_t state, TokenSet* set);
  const TextClass* stays_in(uint32_t state) const;
  bool takes_words_alike(uint32_t state);
  void walk_starts(uint32_t state, const bool* left_out, TokenSet* set);
  void walk_after_byte(uint32_t state, TokenSet* set);
  void walk_leaving(uint32_t state, const TextClass& text, bool splits, TokenSet* set);
  void walk_by_length(const TextStates& after, const TextClass& text, TokenSet* set);
  Leaving walk_by_byte(const TextStates& after, const TextClass& text, TokenSet* set);
  // The tokens below a node whose next byte is `wanted`.
  template <typename Wanted>
  void walk(uint32_t node, uint32_t state, const Wanted& wanted, TokenSet* set);
  uint32_t pass_leaves(Step* step, TokenSet* set);
  bool step_into(const Step& from, uint32_t node, uint32_t next, Step* made, TokenSet* set);
  bool is_known(uint8_t byte, uint32_t next) const {
    return next == leaving_.state && (kKindOfByte[byte] & leaving_.loops) != 0;
  }
  bool takes_below(const Row& row, uint32_t node) const;
  bool is_pruned(const Row& row, uint32_t node, size_t depth) const;
  void note_exit(uint32_t rule, uint32_t node, uint32_t counts, TokenSet* set);
  void append(uint32_t node, uint32_t counts, uint32_t state, TokenSet* set);
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
  // Of the walk that goes on: the steps from the root, and the lengths of text before it.
  std::vector<Step> path_;
  uint64_t lengths_ = kAnyLength;
  Leaving leaving_;
  TokenGatherer gathered_;
  size_t bytes_ = 0;
  uint64_t visited_ = 0;
};

}  // namespace rushlight::llm::grammar
