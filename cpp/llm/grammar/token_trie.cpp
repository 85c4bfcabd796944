#include "rushlight/llm/grammar/token_trie.h"

#include <algorithm>
#include <cstring>

#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm::grammar {
namespace {

// What a text begins with that is of a class, up to as many characters as may be.
class Beginnings {
 public:
  explicit Beginnings(const CodeSet& codes) : codes_(codes) {
    for (uint32_t code = 0; code < 128; ++code) ascii_[code] = find(code);
  }
  // Returns its bytes.
  size_t read(StringView text, uint32_t* characters) const {
    size_t bytes = 0;
    for (*characters = 0; bytes < text.size() && *characters < TextClass::kMaxCharacters;) {
      const Character character = read_utf8(text.data() + bytes, text.size() - bytes);
      if (!character.valid) break;
      if (character.code < 128 ? !ascii_[character.code] : !find(character.code)) break;
      bytes += character.bytes;
      ++*characters;
    }
    return bytes;
  }

 private:
  bool find(uint32_t code) const {
    return std::any_of(codes_.begin(), codes_.end(), [code](const CodeRange& range) {
      return code >= range.low && code <= range.high;
    });
  }

  const CodeSet& codes_;
  bool ascii_[128] = {};
};

std::vector<CodeSet> text_classes() {
  constexpr CodeRange kLineEnds = {0x2028, 0x2029}, kControls = {0, 0x1F};
  const CodeSet not_in_strings = {kControls, {'"', '"'}, {'\\', '\\'}, {0x7F, 0x7F}, kLineEnds};
  CodeSet not_in_words = space_codes();
  not_in_words.insert(not_in_words.end(), not_in_strings.begin(), not_in_strings.end());
  return {complement(normalized(not_in_strings)), complement({{'<', '<'}, kLineEnds}),
          complement(line_end_codes()),           complement(normalized(not_in_words)),
          {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}},   {{'a', 'z'}}};
}

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

void TokenTrie::add_kinds(StringView text, const std::vector<uint32_t>& path) {
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
  nodes_[path[0]].kinds_below |= kinds;
}

// Sorts the texts; returns the root.
uint32_t TokenTrie::add_tree(std::vector<Text>* texts) {
  std::sort(texts->begin(), texts->end(), [](const Text& a, const Text& b) {
    const size_t shorter = std::min(a.text.size(), b.text.size());
    const int compared = std::memcmp(a.text.data(), b.text.data(), shorter);
    if (compared != 0) return compared < 0;
    if (a.text.size() != b.text.size()) return a.text.size() < b.text.size();
    return a.ending.token() < b.ending.token();
  });
  const auto root = static_cast<uint32_t>(nodes_.size());
  std::vector<uint32_t> path;  // from the root to the last node
  const auto push = [&](size_t depth, uint8_t byte) {
    path.push_back(static_cast<uint32_t>(nodes_.size()));
    TrieNode node;
    node.first = static_cast<uint32_t>(endings_.size());
    node.depth = static_cast<uint16_t>(depth);
    node.byte = byte;
    nodes_.push_back(node);
  };
  const auto end_below = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) {
      nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
    }
  };
  push(0, 0);
  for (const auto& [text, ending] : *texts) {
    const auto byte_at = [&text = text](size_t i) { return static_cast<uint8_t>(text.data()[i]); };
    size_t shared = 0;
    while (shared < text.size() && shared + 1 < path.size() &&
           nodes_[path[shared + 1]].byte == byte_at(shared)) {
      ++shared;
    }
    end_below(shared + 1);
    for (size_t i = shared; i < text.size(); ++i) push(i + 1, byte_at(i));
    endings_.push_back(ending);
    add_kinds(text, path);
  }
  end_below(0);
  return root;
}

// `is_other`: of each ending of the tree of all tokens.
void TokenTrie::add_others(const std::vector<bool>& is_other, TextClass* made) const {
  std::vector<uint32_t> others_before = {0};  // by ending
  for (const bool other : is_other) others_before.push_back(others_before.back() + (other ? 1 : 0));
  std::vector<uint32_t> part(nodes_[0].end +
                             1);  // by node: that of the part which is not before it
  for (uint32_t i = 0; i < nodes_[0].end; ++i) {
    part[i] = static_cast<uint32_t>(made->others.size());
    const uint32_t end = nodes_[i].end;
    const size_t last = end < nodes_[0].end ? nodes_[end].first : is_other.size();
    if (i == 0 || others_before[last] > others_before[nodes_[i].first]) {
      made->others.push_back({0, i});
    }
  }
  part.back() = static_cast<uint32_t>(made->others.size());
  for (PartNode& node : made->others) node.end = part[nodes_[node.whole].end];
}

// `texts`: all, in the order of their tree.
void TokenTrie::add_class(const CodeSet& codes, const std::vector<Text>& texts, size_t tokens) {
  classes_.emplace_back();
  TextClass& made = classes_.back();
  made.codes = codes;
  for (std::vector<uint32_t>& bits : made.up_to) bits.resize((tokens + 31) / 32);
  const Beginnings beginnings(made.codes);
  std::vector<bool> is_other;
  std::vector<Text> rests;
  for (const Text& whole : texts) {
    const StringView text = whole.text;
    const uint32_t token = whole.ending.token();
    uint32_t characters = 0;
    const size_t bytes = beginnings.read(text, &characters);
    for (size_t i = 0; i < bytes; ++i) made.bytes[static_cast<uint8_t>(text.data()[i])] = true;
    is_other.push_back(bytes < text.size());
    if (is_other.back()) {
      rests.push_back({{text.data() + bytes, text.size() - bytes}, Ending(token, characters)});
    } else {
      made.up_to[characters][token / 32] |= 1u << (token % 32);
      ++made.sizes[characters];
    }
  }
  for (size_t n = 1; n <= TextClass::kMaxCharacters; ++n) {
    made.sizes[n] += made.sizes[n - 1];
    for (size_t i = 0; i < made.up_to[n].size(); ++i) made.up_to[n][i] |= made.up_to[n - 1][i];
  }
  add_others(is_other, &made);
  made.rests = add_tree(&rests);
}

TokenTrie::TokenTrie(const std::vector<std::string>& pieces) {
  std::vector<Text> texts;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const StringView text(pieces[i].data(), pieces[i].size());
    if (text.empty() || text.size() > kMaxPiece) continue;
    texts.push_back({text, Ending(static_cast<uint32_t>(i))});
    longest_ = std::max(longest_, text.size());
  }
  add_tree(&texts);
  for (const CodeSet& codes : text_classes()) add_class(codes, texts, pieces.size());
  nodes_.emplace_back();
  nodes_.back().first = static_cast<uint32_t>(endings_.size());
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
    const Span<const Ending> endings = endings_at(node);
    if (!endings.empty()) token = static_cast<int32_t>(endings[endings.size() - 1].token());
  }
  return token;
}

}  // namespace rushlight::llm::grammar
