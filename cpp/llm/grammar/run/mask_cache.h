// Which tokens an automaton takes, from each place.
//
// Tokens that stay within the call of a state depend on the state alone: they are found by one walk
// of the vocabulary's tree, and kept. A state that takes all text of a class, as within strings,
// needs a walk of the other tokens alone. Where a token goes past the end of the call, the walk
// leaves an exit, and goes on from there for each state that a caller continues at, which is kept
// as well; and so on, as far down the stack as tokens reach.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "rushlight/llm/grammar/run/byte_classes.h"
#include "rushlight/llm/grammar/run/lexeme_walk.h"
#include "rushlight/llm/grammar/run/places.h"
#include "rushlight/llm/grammar/run/token_set.h"

namespace rushlight::llm::grammar {

class MaskCache {
 public:
  MaskCache(const Automaton& automaton, const TokenTrie& trie, size_t tokens, size_t max_bytes);

  // Sets the bits of the tokens that can be read from some places of `reader`.
  void add_masks(const Places& places, const Reader& reader, uint32_t* bits);
  size_t bytes() const;
  // Nodes of the trees that walks have come to.
  uint64_t visited() const { return visited_ + lexemes_.visited(); }

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX, kNowhere = 0;
  static constexpr uint64_t kUnknownKinds = UINT64_MAX;

  // Closed places, relative to the end of the call that a walk began in.
  struct Node {
    Places places;
    bool ends = false;
    bool has_lexeme = false;            // some place is in a lexeme
    uint64_t lexeme_left = 0;           // the only place is in one, which may take so many counts
    uint64_t taken = kUnknownKinds;     // kinds of characters of which some place takes some text
    uint32_t after_call = kUnknown;     // where that goes on when its call ends
    std::unique_ptr<uint32_t[]> after;  // by class of bytes: the node after it
  };
  struct Step {
    uint32_t child, end;    // of the tree: the next to visit, and the one after the last
    uint32_t at;            // a node of places
    const uint32_t* after;  // that Node's
  };
  // How many counts the outermost call needs at least, and may take.
  struct Window {
    uint64_t low = 0, high = kEndless;
  };
  struct Key {
    uint32_t set;  // that is continued, or kUnknown
    uint32_t state;
    uint64_t count;
    bool operator==(const Key& other) const {
      return set == other.set && state == other.state && count == other.count;
    }
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };

  struct Text {  // that is fixed, from a state on
    uint32_t place, state;
  };
  struct Texts {  // of the same beginning, which leads to a node
    uint32_t node;
    size_t begin, end;
  };

  void clear();
  void add_mask(const Place& place, const Reader& reader, uint32_t* bits);
  // `ends`: of the outermost call, whatever the places say.
  uint32_t node_of(Places places, bool ends = false);
  uint32_t closed_node_of(Places places, bool ends);
  uint32_t after_call(uint32_t node);
  bool is_simple(const Node& node, uint8_t byte) const;
  uint32_t target_of(uint32_t node, uint8_t byte);
  uint32_t after(uint32_t node, uint8_t byte);
  bool is_counted(uint32_t state, const Window& window) const;
  size_t longest_from(uint32_t state) const;
  uint32_t set_of(const Place& place, const Window& window);
  uint32_t continued(uint32_t set, uint32_t state, uint64_t count);
  // Goes through the tokens below a node of the trees from the places `start`.
  void walk(const Exit& from, uint32_t start, TokenSet* set);
  // As `walk`, from a node of places that is in a lexeme: up to the end of that.
  void walk_lexeme(const Exit& from, uint32_t tree_node, uint32_t at, TokenSet* set);
  bool is_in_text(uint32_t state) const;
  void add_texts(const Places& places, uint32_t* bits);
  void add_texts_below(const Texts& texts, uint32_t* bits);
  void push_step(uint32_t tree_node, uint32_t at);
  uint64_t counts_left(const Place& place) const;
  bool is_in_lexeme(const Node& at, const TrieEntry& entry) const;
  bool takes_below(Node* at, uint32_t node);
  void append(Span<const Ending> endings, const Exit& from, TokenSet* set);
  uint32_t store(const Key& key, TokenSet set);
  void add_tokens(const TokenSet& set, const Window& window, uint32_t* bits);
  void add_continued(uint32_t set, uint32_t stack, const Stacks& stacks, const Window& window,
                     uint32_t* bits);

  const Automaton& automaton_;
  const TokenTrie& trie_;
  const ByteClasses classes_;
  const size_t words_, max_bytes_;
  const uint64_t reach_;  // counts of the longest token, and of what ends a call
  Reader reader_;
  std::vector<Node> nodes_;
  std::unordered_multimap<uint64_t, uint32_t> node_by_hash_;
  std::vector<TokenSet> sets_;
  std::unordered_map<Key, uint32_t, KeyHash> set_by_key_;
  std::vector<Step> path_;  // of the walk that goes on
  TokenGatherer gathered_;
  LexemeWalk lexemes_;
  std::vector<Exit> ended_;           // of the lexeme that a walk went through
  std::vector<uint64_t> most_least_;  // by rule: the most that a state needs to its end
  std::vector<uint32_t> scratch_;
  // Of places that are masked together: texts, those of each byte, and which places need a mask of
  // their own.
  std::vector<Text> texts_;
  std::vector<Texts> open_texts_;
  std::vector<bool> is_left_;
  size_t bytes_ = 0;
  uint64_t visited_ = 0;
};

}  // namespace rushlight::llm::grammar
