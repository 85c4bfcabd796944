#include "rushlight/llm/grammar/token_trie.h"

#include <algorithm>

#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm::grammar {
namespace {

// Makes a tree of sorted texts.
class Planter {
 public:
  explicit Planter(std::vector<TrieNode>* nodes) : nodes_(*nodes) {
    nodes_.push_back({0, -1, 0, 0, 0});
  }

  // Returns the node of the text. `whole`: the path of the same text in another tree, or null.
  uint32_t add(const std::string& text, const std::vector<uint32_t>* whole) {
    size_t shared = 0;
    while (shared < text.size() && shared + 1 < path_.size() &&
           nodes_[path_[shared + 1]].byte == static_cast<uint8_t>(text[shared])) {
      ++shared;
    }
    end_below(shared + 1);
    for (size_t i = shared; i < text.size(); ++i) {
      path_.push_back(static_cast<uint32_t>(nodes_.size()));
      const uint32_t same = whole != nullptr ? (*whole)[i + 1] : path_.back();
      const auto depth = static_cast<uint16_t>(i + 1);
      nodes_.push_back({0, -1, same, depth, static_cast<uint8_t>(text[i])});
    }
    return path_.back();
  }
  void finish() { end_below(0); }
  const std::vector<uint32_t>& path() const { return path_; }  // from the root to the last node

 private:
  void end_below(size_t depth) {
    for (; path_.size() > depth; path_.pop_back()) {
      nodes_[path_.back()].end = static_cast<uint32_t>(nodes_.size());
    }
  }

  std::vector<TrieNode>& nodes_;
  std::vector<uint32_t> path_ = {0};
};

// The characters of a plain text; 0 if it is not plain.
uint32_t plain_characters(const std::string& text) {
  uint32_t characters = 0;
  for (size_t i = 0; i < text.size(); ++characters) {
    const Character character = read_utf8(text.data() + i, text.size() - i);
    if (!character.valid || !is_plain(character.code)) return 0;
    i += character.bytes;
  }
  return characters;
}

}  // namespace

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
  Planter all(&nodes_), others(&plain_.others);
  plain_.bits.assign((pieces.size() + 31) / 32, 0);
  for (const int32_t token : order) {
    const std::string& text = piece(token);
    TrieNode& node = nodes_[all.add(text, nullptr)];
    twins_[static_cast<size_t>(token)] = node.token;
    node.token = token;
    const auto number = static_cast<uint32_t>(token);
    const uint32_t characters = plain_characters(text);
    if (characters == 0) {
      plain_.others[others.add(text, &all.path())].token = token;
    } else {
      plain_.tokens.push_back({number, characters});
      plain_.bits[number / 32] |= 1u << (number % 32);
      for (const char c : text) plain_.bytes[static_cast<uint8_t>(c)] = true;
    }
  }
  all.finish();
  others.finish();
  std::stable_sort(plain_.tokens.begin(), plain_.tokens.end(),
                   [](const auto& a, const auto& b) { return a.characters < b.characters; });
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
