// Which tokens an automaton takes, from each place.
//
// Tokens that stay within the call of a state depend on the state alone: they are found by one walk
// of the vocabulary's tree, and kept. A state that takes all text of a class, as within strings,
// needs a walk of the other tokens alone. Where a token goes past the end of the call, the walk
// leaves an exit, and goes on from there for each state that a caller continues at, which is kept
// as well; and so on, as far down the stack as tokens reach.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rushlight/llm/grammar/automaton/encoding.h"
#include "rushlight/llm/grammar/run/places.h"
#include "rushlight/llm/grammar/token_trie.h"

namespace rushlight::llm::grammar {

class MaskCache {
 public:
  MaskCache(const Automaton& automaton, const TokenTrie& trie, size_t tokens, size_t max_bytes);

  // Sets the bits of the tokens that can be read from a place of `reader`.
  void add_mask(const Place& place, const Reader& reader, uint32_t* bits);
  size_t bytes() const;

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX, kNowhere = 0;

  // Closed places, relative to the end of the call that a walk began in.
  struct Node {
    Places places;
    bool ends = false;
    std::vector<std::pair<uint8_t, uint32_t>> few;  // byte and node after it
    std::vector<uint32_t> all;                      // by byte, once there are more
  };
  struct Counted {
    uint32_t what;    // a token, or a node of the tree
    uint32_t counts;  // that a call adds up to there
  };
  struct Entry {
    std::vector<uint32_t> bits;  // of `open`, where there are many
    std::vector<Counted>
        open;  // tokens that stay in the call, with the counts they need to its end
    std::vector<Counted> closed;  // tokens that end it
    std::vector<Counted> exits;   // nodes of the tree after which the call has ended
    // The class of which all tokens stay in the call as well, or null; what each character counts,
    // and what is needed after them.
    const TextClass* text = nullptr;
    uint32_t counts_of_text = 0, least_after_text = 0;
  };
  struct Following {  // what a text after a call of a rule may begin with, whoever called it
    std::bitset<256> bytes;
    uint64_t kinds = 0;  // of characters
  };
  struct Row {
    std::array<uint32_t, 256> next;  // by byte: the state after it, or kUnknown
    uint64_t loops = 0;              // the kinds of characters that change nothing
  };
  // How many counts the outermost call needs at least, and may take.
  struct Window {
    uint64_t low = 0, high = kEndless;
  };
  struct Key {
    uint32_t entry;  // that is continued, or kUnknown
    uint32_t state;
    uint64_t count;
    bool operator==(const Key& other) const {
      return entry == other.entry && state == other.state && count == other.count;
    }
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };

  void clear();
  uint32_t node_of(Places places);
  bool loops(const Node& node, uint8_t byte);
  uint32_t target_of(uint32_t node, uint8_t byte);
  uint32_t after(uint32_t node, uint8_t byte);
  uint32_t known_after(const Node& node, uint8_t byte) const;
  uint32_t entry_of(uint32_t state, uint64_t count);
  uint32_t continued(uint32_t entry, uint32_t state, uint64_t count);
  // Goes through the tokens below a node of the tree from the places `start`.
  void walk(uint32_t below, uint32_t start, uint32_t counts, std::vector<Counted>* tokens,
            std::vector<Counted>* exits);
  // Of a state of a lexeme.
  void walk_lexeme(uint32_t state, Entry* entry);
  const Row& row_of(uint32_t state);
  uint64_t loops_of(uint32_t state, const Row& row);
  bool takes_text(uint32_t state, size_t number, Entry* entry);
  bool leads_to(uint32_t state, const ByteSequence& bytes, size_t read, uint32_t to,
                uint32_t* counts);
  const Following& following(uint32_t rule);
  void append_all_from(const TrieNode& node, Entry* entry);
  void append_tokens(const TrieNode& node, uint32_t counts, std::vector<Counted>* tokens) const;
  void sort_by_counts(const std::vector<Counted>& tokens, std::vector<Counted>* sorted);
  void set_bits(const std::vector<Counted>& tokens, Entry* entry) const;
  uint32_t store(const Key& key, Entry entry);
  void add_tokens(const Entry& entry, const Window& window, uint32_t* bits);
  void add_continued(uint32_t entry, uint32_t stack, const Stacks& stacks, const Window& window,
                     uint32_t* bits);

  const Automaton& automaton_;
  const TokenTrie& trie_;
  const size_t words_, max_bytes_;
  Reader reader_;
  std::vector<Node> nodes_;
  std::unordered_multimap<uint64_t, uint32_t> node_by_hash_;
  std::vector<Entry> entries_;
  std::unordered_map<Key, uint32_t, KeyHash> entry_by_key_;
  std::vector<std::unique_ptr<Row>> rows_;             // by state
  std::vector<ByteSequence> beyond_ascii_;             // all ways to write a character beyond ASCII
  std::vector<std::vector<ByteSequence>> ways_;        // by class: all ways to write a character
  std::vector<std::vector<uint32_t>> after_calls_;     // by rule: where its callers go on
  std::unordered_map<uint32_t, Following> following_;  // by rule
  // Of the walk that goes on: by depth, the node or state, its transitions, the counts, and the
  // node of the tree if the call may end there, and it is not known whether a token goes on.
  std::vector<uint32_t> path_;
  std::vector<const uint32_t*> rows_path_;
  std::vector<uint32_t> counts_path_;
  std::vector<uint32_t> exits_path_;
  std::vector<const Row*> states_path_;
  std::vector<Counted> drawn_;
  std::vector<uint32_t> scratch_;
  size_t bytes_ = 0;
};

}  // namespace rushlight::llm::grammar
