// The tokens of a vocabulary as a tree of their bytes, in preorder: an automaton that walks it sees
// each beginning that tokens share once, and leaves out all tokens of a beginning at a time.
//
// Most tokens are text of a few classes, which are known beforehand: where an automaton takes any
// text of a class, as it does within strings, only the other tokens need a walk. Where such text
// changes nothing, they need it only from where they leave the class: a tree for each class has
// them by what follows there. Each node knows what kinds of characters come below it: where those
// change nothing, all its tokens are taken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rushlight/core/span.h"
#include "rushlight/llm/grammar/regex/classes.h"

namespace rushlight::llm::grammar {

struct TrieNode {
  uint64_t kinds_below = 0;  // of characters that follow the node in the tokens below it
  uint32_t end = 0;          // the node after those below this one
  uint32_t first = 0;        // ending of this node, and then of those below it
  uint16_t depth = 0;        // bytes from the root
  uint8_t byte = 0;
};

// A token that ends at a node; in the tree of a class, after `before` characters of the class.
class Ending {
 public:
  explicit Ending(uint32_t token, uint32_t before = 0) : packed_(before << 24 | token) {}
  uint32_t token() const { return packed_ & 0xFFFFFF; }
  uint32_t before() const { return packed_ >> 24; }

 private:
  uint32_t packed_;
};

// A node of the tree of some tokens.
struct PartNode {
  uint32_t end = 0;
  uint32_t whole = 0;  // the same node in the tree of all tokens
};

// The tokens that are UTF-8 of at most kMaxCharacters whole characters of a set.
struct TextClass {
  static constexpr uint32_t kMaxCharacters = 32;

  CodeSet codes;
  // By characters: the tokens of at most so many, as bits in words of 32, and how many they are.
  std::vector<uint32_t> up_to[kMaxCharacters + 1];
  size_t sizes[kMaxCharacters + 1] = {};
  std::vector<PartNode> others;  // the tree of all other tokens
  uint32_t rests = 0;    // the root of the tree of what follows text of the class in other tokens
  bool bytes[256] = {};  // of text of the class in tokens
};

// Kinds of characters as bits: some ASCII characters each, all characters beyond ASCII, and bytes
// that are no character.
uint64_t kind_of_ascii(uint8_t byte);
constexpr uint64_t kBeyondAscii = 1ull << 62, kBroken = 1ull << 63;

class TokenTrie {
 public:
  static constexpr size_t kMaxPiece = 4096;  // longer pieces are left out

  // `pieces` by token, at most 2^24; empty ones are left out.
  explicit TokenTrie(const std::vector<std::string>& pieces);

  // Of all trees. The first is that of all tokens.
  const std::vector<TrieNode>& nodes() const { return nodes_; }
  // What JSON strings take as it is, text that begins no tag, lines, text without spaces, letters
  // and digits, small letters. U+2028 and U+2029, which end lines in patterns alone, are in none.
  const std::vector<TextClass>& classes() const { return classes_; }
  // The tokens that end at a node, and those of the nodes below it as well.
  Span<const Ending> endings_at(uint32_t node) const { return endings(node, node + 1); }
  Span<const Ending> endings_from(uint32_t node) const { return endings(node, nodes_[node].end); }
  size_t longest() const { return longest_; }
  // The child of a node by its next byte, or 0.
  uint32_t child(uint32_t node, uint8_t byte) const;
  // The longest token that `text` begins with, or -1.
  int32_t longest_prefix(StringView text) const;

 private:
  struct Text {
    StringView text;
    Ending ending;
  };
  Span<const Ending> endings(uint32_t node, uint32_t end) const {
    const uint32_t first = nodes_[node].first;
    return {endings_.data() + first, nodes_[end].first - first};
  }
  uint32_t add_tree(std::vector<Text>* texts);
  void add_class(const CodeSet& codes, const std::vector<Text>& texts, size_t tokens);
  void add_others(const std::vector<bool>& is_other, TextClass* made) const;
  void add_kinds(StringView text, const std::vector<uint32_t>& path);

  std::vector<TrieNode> nodes_;  // one more after the last
  std::vector<Ending> endings_;
  std::vector<TextClass> classes_;
  size_t longest_ = 0;
};

}  // namespace rushlight::llm::grammar
