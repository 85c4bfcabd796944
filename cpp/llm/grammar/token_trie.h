// The tokens of a vocabulary as a tree of their bytes, in preorder: an automaton that walks it sees
// each beginning that tokens share once, and leaves out all tokens of a beginning at a time.
//
// Most tokens are plain text. They are known beforehand as well: where an automaton takes any plain
// text, as it does within strings, only the other tokens need a walk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rushlight/core/span.h"

namespace rushlight::llm::grammar {

struct TrieNode {
  uint32_t end;    // the node after those below this one
  int32_t token;   // the token that ends here, or -1
  uint32_t whole;  // of PlainTokens::others: the same node in the tree of all tokens
  uint16_t depth;  // bytes from the root
  uint8_t byte;
};

// The tokens that are UTF-8 of whole characters, none of which JSON strings must escape.
struct PlainTokens {
  struct Token {
    uint32_t token;
    uint32_t characters;
  };
  std::vector<Token> tokens;     // those of few characters first
  std::vector<uint32_t> bits;    // of all tokens, in words of 32
  std::vector<TrieNode> others;  // the tree of all other tokens
  bool bytes[256] = {};          // those of plain tokens
};

inline bool is_plain(uint32_t code) {
  return code >= 0x20 && code != '"' && code != '\\' && code != 0x7F;
}

class TokenTrie {
 public:
  static constexpr size_t kMaxPiece = 4096;  // longer pieces are left out

  // `pieces` by token; empty ones are left out.
  explicit TokenTrie(const std::vector<std::string>& pieces);

  const std::vector<TrieNode>& nodes() const { return nodes_; }
  const PlainTokens& plain() const { return plain_; }
  // Another token with the same bytes, or -1.
  int32_t twin(int32_t token) const { return twins_[static_cast<size_t>(token)]; }
  size_t longest() const { return longest_; }
  // The child of a node by its next byte, or 0.
  uint32_t child(uint32_t node, uint8_t byte) const;
  // The longest token that `text` begins with, or -1.
  int32_t longest_prefix(StringView text) const;

 private:
  std::vector<TrieNode> nodes_;
  std::vector<int32_t> twins_;
  PlainTokens plain_;
  size_t longest_ = 0;
};

}  // namespace rushlight::llm::grammar
