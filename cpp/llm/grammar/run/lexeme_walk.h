// The tokens that go on from a state of a lexeme, as far as they stay in it: the text of a class at
// once, and the other tokens by walks of their trees.
//
// Of tokens that leave the class, what follows the text is walked alone, where the states that the
// text can lead to do not differ in it: all of them, or those after so many characters, or all but
// few, for which tokens are walked from their start.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "rushlight/llm/grammar/run/byte_classes.h"
#include "rushlight/llm/grammar/run/text_reach.h"
#include "rushlight/llm/grammar/run/text_states.h"
#include "rushlight/llm/grammar/run/token_set.h"

namespace rushlight::llm::grammar {

class LexemeWalk {
 public:
  LexemeWalk(const Automaton& automaton, const TokenTrie& trie, const ByteClasses& classes,
             TokenGatherer* gathered);

  // `set->is_counted` says whether counts are to be noted.
  void find(uint32_t state, TokenSet* set);
  // Adds the tokens below a node that go on from a state, uncounted, and the exits to the set.
  void walk_below(uint32_t node, uint32_t state, uint64_t lengths, TokenSet* set);
  // Another state that takes mostly the same tokens, as it differs in few first bytes; or `state`.
  uint32_t similar(uint32_t state);
  // Makes the set of `like`, uncounted, one of `state`, which is similar.
  void adapt(uint32_t state, uint32_t like, TokenSet* set);
  // Whether all tokens below a node can be read from a state, and its call goes on after them; it
  // may take `left` more counts.
  bool takes_below(uint32_t state, uint64_t left, uint32_t node);
  // Kinds of characters of which the state takes some text; all others end what it takes.
  uint64_t taken_kinds(uint32_t state) { return row_of(state).any_taken; }
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
  using Bytes = std::bitset<256>;
  // What a walk needs to know of a state.
  struct Row {
    uint32_t rule = 0;
    bool accepts = false;
    bool stays = false;      // text of the first class leads back to it, which never ends
    bool is_alike = false;   // all small letters lead to the same, as do all capitals and digits
    uint64_t loops = 0;      // the kinds of characters that lead back to the state
    uint64_t dead = 0;       // those that lead nowhere
    uint64_t any_taken = 0;  // kinds of which some are taken, or lead back
    Taken taken[TokenTrie::kClasses];
    uint8_t takes = 0;  // of them
    // Of a state where a call can end: what a text may begin with that follows, and its kinds.
    const Bytes* follows = nullptr;
    uint64_t follow_kinds = 0;
    uint32_t* next = nullptr;  // by class of bytes: the state after it, or kNone
  };
  // A node of the tree on the way to where the walk is.
  struct Step {
    uint32_t child, end;  // the next to visit, and the one after the last
    uint32_t counts;
    const Row* row;
    bool is_text;   // of `leaving_`
    bool is_apart;  // and in a state apart
  };

  // Tokens that begin with text, all tokens of such text alone being known.
  struct Leaving {
    const TextClass* text = nullptr;  // of a class
    uint64_t walked = UINT64_MAX;     // the kinds of characters by which tokens leave it
    // The kinds by which others leave it, which are known unless their text leads to a state apart.
    uint64_t done = 0;
    bool has_apart = false;  // there are such states, or text that leads nowhere
    // Or text that leads back to a state, of kinds of which all characters do; `sought` are the
    // kinds of which a token must have one, so that it has to be found out.
    uint32_t state = kNone;
    uint64_t loops = 0, sought = UINT64_MAX;
  };

  struct AfterByte {  // tokens of one of these bytes, and then text of a class
    const TextClass* text = nullptr;
    Bytes first;
  };

  bool take_loops(uint32_t state, TokenSet* set);
  void walk_loops(uint32_t state, TokenSet* set);
  const TextClass* mostly_loops(const Row& row) const;
  const TextClass* take_text(uint32_t state, bool* splits, TokenSet* set);
  struct EnderSearch;
  struct SameEnd;
  const TextClass* take_text_by_least(uint32_t state, size_t taken, TokenSet* set);
  bool find_after(uint32_t from, const TextClass& text, std::vector<uint32_t>* states);
  void add_beyond_ascii(uint32_t state, std::vector<uint32_t>* states);
  bool find_enders(EnderSearch* search);
  bool take_enders(const SameEnd& at, EnderSearch* search);
  void add_longer_ends(const SameEnd& at, EnderSearch* search, std::vector<SameEnd>* open);
  uint32_t last_byte_of(uint32_t state, EnderSearch* search);
  Enders* enders_of(uint32_t least, EnderSearch* search);
  void add_enders(const Suffixes::Range& range, uint32_t least, EnderSearch* search);
  void try_ender(uint32_t token, EnderSearch* search);
  void add_ender(uint32_t token, uint32_t counts, uint32_t state, EnderSearch* search);
  bool walk_to_base(EnderSearch* search);
  uint32_t least_of(uint32_t state) const;
  AfterByte take_text_after_byte(uint32_t state, TokenSet* set);
  Bytes take_many_after_byte(uint32_t state, TokenSet* set);
  const TextClass* stays_in(uint32_t state) const;
  bool takes_words_alike(uint32_t state);
  void walk_starts(uint32_t state, const Bytes& wanted, TokenSet* set);
  void walk_after_byte(uint32_t state, TokenSet* set);
  void walk_leaving(uint32_t state, const TextClass& text, bool splits, TokenSet* set);
  void walk_by_length(const TextStates& after, const TextClass& text, TokenSet* set);
  void walk_by_byte(const TextStates& after, const TextClass& text, bool may_fail, TokenSet* set);
  std::vector<uint32_t> states_apart(const TextStates& after, const TextClass& text,
                                     const Bytes& wanted);
  bool leaves_out(const Step& step, uint8_t byte, uint32_t next) const;
  void leave_out(uint32_t node, TokenSet* set);
  // The tokens from a child of a node on, at which the state of the row is.
  void walk_child(uint32_t child, const Row& row, TokenSet* set);
  // The tokens below a node whose next byte is wanted.
  void walk(uint32_t node, uint32_t state, const Bytes& wanted, TokenSet* set);
  enum class Known : uint8_t { Nothing, Class, Loops };  // of text that tokens begin with
  template <Known known, bool counted>
  void walk_from(Step* first, TokenSet* set);
  template <Known known, bool counted>
  bool step_into(Step* from, uint32_t node, uint32_t next, TokenSet* set);
  bool is_known(uint8_t byte, uint32_t next) const {
    return next == leaving_.state && (kKindOfByte[byte] & leaving_.loops) != 0;
  }
  static bool takes_below(const Row& row, const TrieEntry& entry);
  // Where to go on at a node: by what follows text, if that leads back to the state.
  uint32_t way_on(const Row& row, uint32_t node) const {
    const uint32_t rests = trie_.entries()[node].rests;
    return row.stays && rests != 0 ? rests : node;
  }
  bool is_pruned(const Row& row, const TrieEntry& entry, size_t depth, bool is_apart) const;
  void note_exit(const Row& row, uint32_t node, uint32_t counts, TokenSet* set);
  void append(uint32_t node, uint32_t counts, uint32_t state, TokenSet* set);
  const Row& row_of(uint32_t state) {
    const Row* row = rows_[state];
    return row != nullptr ? *row : add_row(state);
  }
  const Row& add_row(uint32_t state);
  uint32_t next_of(const Row& row, uint8_t byte) const { return row.next[classes_.of(byte)]; }
  uint64_t loops_of(uint32_t state, const Row& row) const;
  bool is_alike(const Row& row, uint8_t low, uint8_t high) const;
  bool leads_back(uint32_t state, const ByteSequence& bytes, size_t read, uint32_t to) const;
  const Bytes& following(uint32_t rule);
  bool goes_on(uint32_t rule, const TextClass& text);

  const Automaton& automaton_;
  const TokenTrie& trie_;
  const ByteClasses& classes_;
  const size_t words_;
  const TextReach reach_;
  // By state, or null; rows and their tables are made many at a time.
  static constexpr size_t kRowsAtOnce = 16;
  std::vector<const Row*> rows_;
  std::vector<std::unique_ptr<Row[]>> made_rows_;
  std::vector<std::unique_ptr<uint32_t[]>> made_tables_;
  size_t left_rows_ = 0;
  std::vector<ByteSequence> beyond_ascii_;          // all ways to write a character beyond ASCII
  std::vector<std::vector<uint32_t>> after_calls_;  // by rule: where its callers go on
  // By rule: what a text after a call may begin with, whoever called it.
  std::unordered_map<uint32_t, Bytes> following_;
  // Of the walk that goes on: the steps from the root, and the lengths of text before it.
  std::vector<Step> path_;
  uint64_t lengths_ = kAnyLength;
  Leaving leaving_;
  std::vector<bool> is_apart_;      // by state, of `leaving_`
  std::vector<uint32_t> left_out_;  // tokens whose text led to such a state
  TokenGatherer& gathered_;
  size_t bytes_ = 0;
  uint64_t visited_ = 0;
};

}  // namespace rushlight::llm::grammar
