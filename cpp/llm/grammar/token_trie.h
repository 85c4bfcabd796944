// The tokens of a vocabulary as a tree of their bytes, in preorder: an automaton that walks it sees
// each beginning that tokens share once, and leaves out all tokens of a beginning at a time.
//
// Most tokens are text of a few classes, which are known beforehand: where an automaton takes any
// text of a class, as it does within strings, only the other tokens need a walk. Each node knows
// what kinds of characters come below it: where those change nothing, all its tokens are taken.
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
  int32_t token = -1;        // the token that ends here, or -1
  uint32_t first_token = 0;  // of this node and those below it: see TokenTrie::tokens_from
  uint16_t depth = 0;        // bytes from the root
  uint8_t byte = 0;
  bool has_twin = false;  // other tokens end here as well
};

// A node of the tree of some tokens.
struct PartNode {
  uint32_t end = 0;
  uint32_t whole = 0;  // the same node in the tree of all tokens
};

// The tokens that are UTF-8 of whole characters of a set.
struct TextClass {
  struct Token {
    uint32_t token;
    uint32_t characters;
  };
  CodeSet codes;
  std::vector<Token> tokens;     // those of few characters first
  std::vector<uint32_t> bits;    // of all tokens, in words of 32
  std::vector<PartNode> others;  // the tree of all other tokens
  bool bytes[256] = {};          // those of its tokens
};

// Kinds of characters as bits: some ASCII characters each, all characters beyond ASCII, and bytes
// that are no character.
uint64_t kind_of_ascii(uint8_t byte);
constexpr uint64_t kBeyondAscii = 1ull << 62, kBroken = 1ull << 63;

class TokenTrie {
 public:
  static constexpr size_t kMaxPiece = 4096;  // longer pieces are left out

  // `pieces` by token; empty ones are left out.
  explicit TokenTrie(const std::vector<std::string>& pieces);

  const std::vector<TrieNode>& nodes() const { return nodes_; }
  // What JSON strings take as it is; text that begins no tag; words. Those of most tokens first.
  const std::vector<TextClass>& classes() const { return classes_; }
  // The tokens of a node and of those below it.
  Span<const uint32_t> tokens_from(const TrieNode& node) const {
    const size_t end = node.end < nodes_.size() ? nodes_[node.end].first_token : tokens_.size();
    return {tokens_.data() + node.first_token, end - node.first_token};
  }
  // Another token with the same bytes, or -1.
  int32_t twin(int32_t token) const { return twins_[static_cast<size_t>(token)]; }
  size_t longest() const { return longest_; }
  // The child of a node by its next byte, or 0.
  uint32_t child(uint32_t node, uint8_t byte) const;
  // The longest token that `text` begins with, or -1.
  int32_t longest_prefix(StringView text) const;

 private:
  void add_kinds(const std::string& text, const std::vector<uint32_t>& path);

  std::vector<TrieNode> nodes_;
  std::vector<int32_t> twins_;
  std::vector<TextClass> classes_;
  std::vector<uint32_t> tokens_;  // in the order of their nodes
  size_t longest_ = 0;
};

}  // namespace rushlight::llm::grammar
