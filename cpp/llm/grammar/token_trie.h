// The tokens of a vocabulary as a tree of their bytes: an automaton that walks it sees each
// beginning that tokens share once, and leaves out all tokens of a beginning at a time.
//
// Most tokens are text of a few classes, which are known beforehand: where an automaton takes any
// text of a class, as it does within strings, those tokens need no walk. Tokens that begin with
// text of the class and then leave it have two trees of their own: from their start, and from where
// they leave it, which is enough where it does not matter what comes before. So have those that
// begin strings, from where the text of the string ends.
//
// Most automata do not tell small letters apart, nor capitals, nor digits: another tree has words
// with one letter for all, so that words of the same form are one node.
//
// Each node knows what kinds of characters come below it, and how long the tokens get: where an
// automaton takes them all, they need no walk either.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "rushlight/core/span.h"
#include "rushlight/llm/grammar/regex/classes.h"
#include "rushlight/llm/grammar/suffixes.h"

namespace rushlight::llm::grammar {

struct TrieNode {
  uint32_t first = 0, last = 0;  // endings of this node, and then of those below it
};

// A token that ends at a node; in the tree of what follows a class, after `before` characters of
// it.
class Ending {
 public:
  explicit Ending(uint32_t token, uint32_t before = 0) : packed_(before << 24 | token) {}
  uint32_t token() const { return packed_ & 0xFFFFFF; }
  uint32_t before() const { return packed_ >> 24; }

 private:
  uint32_t packed_;
};

// What a walk reads of each node that it passes, in few bytes: most nodes are left out, or have no
// children, and one ending or none.
struct TrieEntry {
  static constexpr uint32_t kNoToken = UINT32_MAX, kManyTokens = UINT32_MAX - 1;

  uint64_t kinds_below = 0;   // of characters that follow the node in the tokens below it
  uint32_t token = kNoToken;  // that ends here, or one of the above
  uint32_t children = 0;      // the first of them; they follow each other, sorted by their bytes
  uint16_t child_count = 0;
  uint8_t byte = 0;         // the last before the node
  uint8_t bytes_below = 0;  // of the longest token, from here on; 255 may be more
  // Of some nodes: the root of a tree of the tokens from here on, by what follows the text of the
  // first class that comes next; else 0.
  uint32_t rests = 0;
};

// The tokens that are UTF-8 of at most kMaxCharacters whole characters of a set.
struct TextClass {
  static constexpr uint32_t kMaxCharacters = 32;

  CodeSet codes;
  uint64_t kinds = 0;       // those of which all characters are of the class
  uint64_t some_kinds = 0;  // those of which some are
  // By characters: the tokens of at most so many, as bits in words of 32, and how many they are.
  std::vector<uint32_t> up_to[kMaxCharacters + 1];
  size_t sizes[kMaxCharacters + 1] = {};
  bool bytes[256] = {};  // of text of the class in tokens
  size_t all() const { return sizes[kMaxCharacters]; }
  // What a token may begin with that is of the class, or in the trees below: by byte.
  std::bitset<256> begins;
  // Roots of the trees of the tokens that leave the class: from their start, and from there on.
  uint32_t leaving = 0, rests = 0;
  uint32_t longest = 0;  // characters before the rests
};

// Kinds of characters as bits: some ASCII characters each, the characters beyond ASCII, and those
// that no class has, with bytes that are no character.
constexpr uint64_t kBeyondAscii = 1ull << 62, kOdd = 1ull << 63;
constexpr uint64_t kControl = 7ull << 59;
// By byte; of those beyond ASCII, kBeyondAscii.
extern const std::array<uint64_t, 256> kKindOfByte;
// Those of kBeyondAscii.
CodeSet beyond_ascii_codes();

class TokenTrie {
 public:
  static constexpr size_t kMaxPiece = 4096;  // longer pieces are left out

  // `pieces` by token, at most 2^24, which must live as long; empty ones are left out.
  explicit TokenTrie(const std::vector<std::string>& pieces);

  static constexpr uint32_t kRoot = 0;  // of the tree of all tokens
  // Roots of the trees of words, written with 'a', 'A' and '0' for all letters and digits and with
  // spaces, and of all other tokens.
  uint32_t words() const { return words_; }
  uint32_t others() const { return others_; }
  static std::bitset<256> bytes_of_words();
  // Of all trees.
  const std::vector<TrieNode>& nodes() const { return nodes_; }
  const std::vector<TrieEntry>& entries() const { return entries_; }  // by node
  uint8_t byte(uint32_t node) const { return entries_[node].byte; }
  uint32_t end_of_children(uint32_t node) const {
    return entries_[node].children + entries_[node].child_count;
  }
  // What JSON strings take as it is, text that begins no tag, lines, text without spaces, letters
  // and digits, small letters. Spaces beyond ASCII, and what ends lines there, are in none.
  static constexpr size_t kClasses = 6;
  const std::vector<TextClass>& classes() const { return classes_; }
  // The tokens that end at a node, by what comes before, and those of the nodes below it as well.
  Span<const Ending> endings_at(uint32_t node) const {
    const TrieNode& at = nodes_[node];
    const TrieEntry& entry = entries_[node];
    if (entry.token == TrieEntry::kNoToken) return {};
    return endings(at.first, entry.child_count > 0 ? nodes_[entry.children].first : at.last);
  }
  // How many characters of a class come before the tokens from a node of a tree of rests on: bits.
  uint64_t lengths_from(uint32_t node) const { return lengths_[node - first_rest_]; }
  Span<const Ending> endings_from(uint32_t node) const {
    return endings(nodes_[node].first, nodes_[node].last);
  }
  // The tokens from a node on as bits in words of 32, where there are very many; else null.
  const uint32_t* bits_from(uint32_t node) const {
    const auto known = large_.find(node);
    return known != large_.end() ? known->second.data() : nullptr;
  }
  static constexpr size_t kVeryMany = 1024;
  // The tokens that consist of these kinds of characters, as bits in words of 32.
  void add_tokens_of(uint64_t kinds, uint32_t* bits) const;
  // How much of that there is to do: sets of tokens to be read.
  static size_t cost_of_tokens(uint64_t kinds);
  // The tokens that begin with a byte of ASCII, those of them that are in `some`, and how many they
  // all are.
  void add_tokens_from(uint8_t byte, uint32_t* bits) const;
  void add_tokens_from(uint8_t byte, const uint32_t* some, uint32_t* bits) const;
  size_t count_from(uint8_t byte) const;
  const Suffixes& suffixes() const { return suffixes_; }
  size_t longest() const { return longest_; }
  size_t tokens() const { return endings_from(kRoot).size(); }
  uint8_t first_byte(uint32_t token) const { return first_bytes_[token]; }
  // The child of a node by its next byte, or kRoot.
  uint32_t child(uint32_t node, uint8_t byte) const;
  // The longest token that `text` begins with, or -1.
  int32_t longest_prefix(StringView text) const;

 private:
  struct Text {
    StringView text;
    Ending ending;
  };
  Span<const Ending> endings(uint32_t first, uint32_t last) const {
    return {endings_.data() + first, last - first};
  }
  uint32_t add_tree(std::vector<Text>* texts);
  void add_children(uint32_t node, uint32_t depth, const std::vector<Text>& texts, uint32_t first);
  void add_kinds(uint32_t root, const std::vector<Text>& texts);
  void add_kinds_of_tokens(const std::vector<Text>& texts, size_t tokens);
  void add_words(const std::vector<Text>& texts);
  void add_class(const CodeSet& codes, const std::vector<Text>& texts, size_t tokens,
                 std::vector<Text>* rests);
  void add_rests(std::vector<std::vector<Text>> rests);
  void add_rests_after(const std::vector<Text>& texts);
  uint32_t rests_after(uint32_t node, size_t depth, const std::vector<Text>& texts);
  void add_large(size_t tokens);

  const Suffixes suffixes_;
  std::vector<TrieNode> nodes_;
  std::vector<TrieEntry> entries_;
  std::vector<Ending> endings_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> large_;  // see bits_from
  std::vector<uint64_t> lengths_;  // by node, from the first of the trees of rests on
  uint32_t first_rest_ = 0;
  std::vector<TextClass> classes_;
  // By kind: the tokens with such characters, and by eight kinds; and those that are in the tree.
  std::array<std::vector<uint32_t>, 64> tokens_with_;
  std::array<std::vector<uint32_t>, 8> tokens_with_some_;
  std::vector<uint32_t> tokens_in_tree_;
  std::array<std::vector<uint32_t>, 128> tokens_from_;  // by first byte; empty if there are none
  std::vector<uint8_t> first_bytes_;                    // by token
  uint32_t words_ = 0, others_ = 0;
  size_t longest_ = 0;
};

}  // namespace rushlight::llm::grammar
