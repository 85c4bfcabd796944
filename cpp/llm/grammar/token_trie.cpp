#include "rushlight/llm/grammar/token_trie.h"

#include <algorithm>
#include <iterator>

#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm::grammar {
namespace {

// Makes a tree of sorted texts.
template <typename Node>
class Planter {
 public:
  explicit Planter(std::vector<Node>* nodes) : nodes_(*nodes) { nodes_.emplace_back(); }

  // Ends all nodes of the path below `depth`.
  void end_below(size_t depth) {
    for (; path_.size() > depth + 1; path_.pop_back()) end_last();
  }
  void push(const Node& node) {
    path_.push_back(static_cast<uint32_t>(nodes_.size()));
    nodes_.push_back(node);
  }
  void finish() {
    end_below(0);
    end_last();
  }
  const std::vector<uint32_t>& path() const { return path_; }  // from the root to the last node

 private:
  void end_last() { nodes_[path_.back()].end = static_cast<uint32_t>(nodes_.size()); }

  std::vector<Node>& nodes_;
  std::vector<uint32_t> path_ = {0};
};

// Sorts tokens into those of a class and others.
class Sorter {
 public:
  Sorter(const CodeSet& codes, size_t tokens, TextClass* made)
      : made_(*made), others_(&made->others) {
    made_.codes = codes;
    made_.bits.assign((tokens + 31) / 32, 0);
    for (uint32_t code = 0; code < 128; ++code) ascii_[code] = find(code);
  }

  // `whole`: the path of the text in the tree of all tokens.
  void add(int32_t token, const std::string& text, const std::vector<uint32_t>& whole) {
    const auto number = static_cast<uint32_t>(token);
    const uint32_t characters = characters_of(text);
    if (characters == 0) return add_other(whole);
    made_.tokens.push_back({number, characters});
    made_.bits[number / 32] |= 1u << (number % 32);
    for (const char c : text) made_.bytes[static_cast<uint8_t>(c)] = true;
  }

  void finish() {
    others_.finish();
    std::stable_sort(made_.tokens.begin(), made_.tokens.end(),
                     [](const auto& a, const auto& b) { return a.characters < b.characters; });
  }

 private:
  void add_other(const std::vector<uint32_t>& whole) {
    const std::vector<uint32_t>& path = others_.path();
    size_t shared = 0;
    while (shared + 1 < path.size() && shared + 1 < whole.size() &&
           made_.others[path[shared + 1]].whole == whole[shared + 1]) {
      ++shared;
    }
    others_.end_below(shared);
    for (size_t i = shared + 1; i < whole.size(); ++i) others_.push({0, whole[i]});
  }
  bool find(uint32_t code) const {
    return std::any_of(made_.codes.begin(), made_.codes.end(), [code](const CodeRange& range) {
      return code >= range.low && code <= range.high;
    });
  }
  // 0 if the text is not of the class.
  uint32_t characters_of(const std::string& text) const {
    uint32_t characters = 0;
    for (size_t i = 0; i < text.size(); ++characters) {
      const Character character = read_utf8(text.data() + i, text.size() - i);
      if (!character.valid) return 0;
      if (character.code < 128 ? !ascii_[character.code] : !find(character.code)) return 0;
      i += character.bytes;
    }
    return characters;
  }

  TextClass& made_;
  Planter<PartNode> others_;
  bool ascii_[128] = {};
};

}  // namespace

// Capitals are one kind, as are digits and control characters.
uint64_t kind_of_ascii(uint8_t byte) {
  uint32_t kind = 61;
  if (byte >= 'a' && byte <= 'z') {
    kind = byte - uint32_t{'a'};
  } else if (byte >= 'A' && byte <= 'Z') {
    kind = 26;
  } else if (byte >= '0' && byte <= '9') {
    kind = 27;
  } else if (byte >= ' ' && byte <= '/') {
    kind = 28 + (byte - uint32_t{' '});
  } else if (byte >= ':' && byte <= '@') {
    kind = 44 + (byte - uint32_t{':'});
  } else if (byte >= '[' && byte <= '`') {
    kind = 51 + (byte - uint32_t{'['});
  } else if (byte >= '{' && byte <= '~') {
    kind = 57 + (byte - uint32_t{'{'});
  }
  return uint64_t{1} << kind;
}

void TokenTrie::add_kinds(const std::string& text, const std::vector<uint32_t>& path) {
  std::vector<size_t> begins;
  for (size_t i = 0; i < text.size(); i += read_utf8(text.data() + i, text.size() - i).bytes) {
    begins.push_back(i);
  }
  uint64_t kinds = 0;
  for (size_t end = text.size(); !begins.empty(); begins.pop_back()) {
    nodes_[path[end]].kinds_below |= kinds;
    const size_t begin = begins.back();
    const Character character = read_utf8(text.data() + begin, text.size() - begin);
    for (size_t i = begin + 1; i < end; ++i) nodes_[path[i]].kinds_below |= kBroken;
    const uint64_t beyond = character.valid ? kBeyondAscii : kBroken;
    kinds |= character.valid && character.code < 128
                 ? kind_of_ascii(static_cast<uint8_t>(character.code))
                 : beyond;
    end = begin;
  }
  nodes_[0].kinds_below |= kinds;
}

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
  const CodeSet in_strings = {
      {0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, 0x7E}, {0x80, kLastCode}};
  const CodeSet sets[] = {normalized(in_strings), complement({{'<', '<'}}), word_codes()};
  classes_.resize(std::size(sets));
  std::vector<Sorter> sorters;
  sorters.reserve(std::size(sets));
  for (size_t i = 0; i < std::size(sets); ++i) {
    sorters.emplace_back(sets[i], pieces.size(), &classes_[i]);
  }
  Planter<TrieNode> all(&nodes_);
  for (const int32_t token : order) {
    const std::string& text = piece(token);
    const std::vector<uint32_t>& path = all.path();
    size_t shared = 0;
    while (shared < text.size() && shared + 1 < path.size() &&
           nodes_[path[shared + 1]].byte == static_cast<uint8_t>(text[shared])) {
      ++shared;
    }
    all.end_below(shared);
    for (size_t i = shared; i < text.size(); ++i) {
      TrieNode node;
      node.first_token = static_cast<uint32_t>(tokens_.size());
      node.depth = static_cast<uint16_t>(i + 1);
      node.byte = static_cast<uint8_t>(text[i]);
      all.push(node);
    }
    TrieNode& last = nodes_[path.back()];
    last.has_twin = last.token >= 0;
    twins_[static_cast<size_t>(token)] = last.token;
    last.token = token;
    tokens_.push_back(static_cast<uint32_t>(token));
    add_kinds(text, path);
    for (Sorter& sorter : sorters) sorter.add(token, text, path);
  }
  all.finish();
  for (Sorter& sorter : sorters) sorter.finish();
  std::sort(classes_.begin(), classes_.end(), [](const TextClass& a, const TextClass& b) {
    return a.tokens.size() > b.tokens.size();
  });
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
