#include "rushlight/llm/grammar/token_trie.h"

#include <algorithm>

namespace rushlight::llm::grammar {

TokenTrie::TokenTrie(const std::vector<std::string>& pieces) : twins_(pieces.size(), -1) {
  std::vector<int32_t> order;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!pieces[i].empty() && pieces[i].size() <= kMaxPiece) {
      order.push_back(static_cast<int32_t>(i));
      longest_ = std::max(longest_, pieces[i].size());
    }
  }
  const auto piece = [&pieces](int32_t token) -> const std::string& {
    return pieces[static_cast<size_t>(token)];
  };
  std::sort(order.begin(), order.end(), [&piece](int32_t a, int32_t b) {
    const int compared = piece(a).compare(piece(b));
    return compared != 0 ? compared < 0 : a < b;
  });
  nodes_.push_back({0, -1, 0, 0, 0, false});
  std::vector<uint32_t> path = {0};  // the nodes from the root to the last one
  for (const int32_t token : order) {
    const std::string& text = piece(token);
    size_t shared = 0;
    while (shared < text.size() && shared + 1 < path.size() &&
           nodes_[path[shared + 1]].byte == static_cast<uint8_t>(text[shared])) {
      ++shared;
    }
    for (; path.size() > shared + 1; path.pop_back()) {
      nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
    }
    for (size_t i = shared; i < text.size(); ++i) {
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      const auto byte = static_cast<uint8_t>(text[i]);
      const auto depth = static_cast<uint16_t>(i + 1);
      nodes_.push_back({0, -1, 0, depth, byte, is_plain(byte)});
    }
    TrieNode& last = nodes_[path.back()];
    twins_[static_cast<size_t>(token)] = last.token;
    last.token = token;
  }
  for (const uint32_t node : path) nodes_[node].end = static_cast<uint32_t>(nodes_.size());
  for (TrieNode& node : nodes_) {
    node.first = static_cast<uint32_t>(in_order_.size());
    for (int32_t token = node.token; token >= 0; token = twin(token)) {
      in_order_.push_back(static_cast<uint32_t>(token));
    }
  }
  for (size_t i = nodes_.size(); i-- > 0;) {
    for (uint32_t below = static_cast<uint32_t>(i) + 1; below < nodes_[i].end;
         below = nodes_[below].end) {
      nodes_[i].is_plain = nodes_[i].is_plain && nodes_[below].is_plain;
    }
  }
}

uint32_t TokenTrie::child(uint32_t node, uint8_t byte) const {
  const uint32_t end = nodes_[node].end;
  for (uint32_t i = node + 1; i < end; i = nodes_[i].end) {
    if (nodes_[i].byte == byte) return i;
  }
  return 0;
}

int32_t TokenTrie::longest_prefix(StringView text) const {
  int32_t token = -1;
  uint32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    node = child(node, static_cast<uint8_t>(text.data()[i]));
    if (node == 0) break;
    if (nodes_[node].token >= 0) token = nodes_[node].token;
  }
  return token;
}

}  // namespace rushlight::llm::grammar
