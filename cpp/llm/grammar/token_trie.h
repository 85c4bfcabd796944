// The tokens of a vocabulary as a tree of their bytes, in preorder: an automaton that walks it sees
// each beginning that tokens share once, and leaves out all tokens of a beginning at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rushlight/core/span.h"

namespace rushlight::llm::grammar {

struct TrieNode {
  uint32_t end;    // the node after those below this one
  int32_t token;   // the token that ends here, or -1
  uint32_t first;  // of in_order(): the tokens of this node and of those below
  uint16_t depth;  // bytes from the root
  uint8_t byte;
  bool is_plain;  // this byte and those below are ASCII that JSON strings need not escape
};

inline bool is_plain(uint8_t byte) {
  return byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\';
}

class TokenTrie {
 public:
  static constexpr size_t kMaxPiece = 4096;  // longer pieces are left out

  // `pieces` by token; empty ones are left out.
  explicit TokenTrie(const std::vector<std::string>& pieces);

  const std::vector<TrieNode>& nodes() const { return nodes_; }
  // Another token with the same bytes, or -1.
  int32_t twin(int32_t token) const { return twins_[static_cast<size_t>(token)]; }
  // All tokens, in the order of the nodes. Those of a node and below it stand together.
  const std::vector<uint32_t>& in_order() const { return in_order_; }
  uint32_t first_after(uint32_t node) const {
    const uint32_t end = nodes_[node].end;
    return end < nodes_.size() ? nodes_[end].first : static_cast<uint32_t>(in_order_.size());
  }
  size_t longest() const { return longest_; }
  // The child of a node by its next byte, or 0.
  uint32_t child(uint32_t node, uint8_t byte) const;
  // The longest token that `text` begins with, or -1.
  int32_t longest_prefix(StringView text) const;

 private:
  std::vector<TrieNode> nodes_;
  std::vector<int32_t> twins_;
  std::vector<uint32_t> in_order_;
  size_t longest_ = 0;
};

}  // namespace rushlight::llm::grammar
