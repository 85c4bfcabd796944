#include "rushlight/llm/grammar/token_trie.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rushlight/llm/grammar/bits.h"
#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm::grammar {
namespace {

bool holds(const CodeSet& codes, uint32_t code) {
  return std::any_of(codes.begin(), codes.end(), [code](const CodeRange& range) {
    return code >= range.low && code <= range.high;
  });
}

// What a text begins with that is of a class, up to as many characters as may be.
class Beginnings {
 public:
  explicit Beginnings(const CodeSet& codes) : codes_(codes) {
    for (uint32_t code = 0; code < 128; ++code) ascii_[code] = holds(codes, code);
  }
  // Returns its bytes.
  size_t read(StringView text, uint32_t* characters) const {
    size_t bytes = 0;
    for (*characters = 0; bytes < text.size() && *characters < TextClass::kMaxCharacters;) {
      const Character character = read_utf8(text.data() + bytes, text.size() - bytes);
      if (!character.valid) break;
      if (character.code < 128 ? !ascii_[character.code] : !holds(codes_, character.code)) break;
      bytes += character.bytes;
      ++*characters;
    }
    return bytes;
  }

 private:
  const CodeSet& codes_;
  bool ascii_[128] = {};
};

std::array<CodeSet, TokenTrie::kClasses> text_classes() {
  // Also line ends, beyond ASCII.
  const CodeSet spaces = space_codes();
  CodeSet odd;
  for (const CodeRange& range : spaces) {
    if (range.low >= 0x80) odd.push_back(range);
  }
  const auto without = [&odd](CodeSet codes) {
    codes.insert(codes.end(), odd.begin(), odd.end());
    return complement(normalized(codes));
  };
  const CodeRange controls = {0, 0x1F}, quote = {'"', '"'}, escape = {'\\', '\\'};
  return {{without({controls, quote, escape, {0x7F, 0x7F}}),
           without({{'<', '<'}}),
           without({{'\n', '\n'}, {'\r', '\r'}}),
           without({{0, ' '}, quote, escape, {0x7F, 0x7F}}),
           {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}},
           {{'a', 'z'}}}};
}

// Capitals are one kind, as are digits, tabs and carriage returns, control characters, and ^`~.
constexpr uint32_t number_of_kind(uint32_t byte) {
  uint32_t kind = 61;
  if (byte >= 'a' && byte <= 'z') {
    kind = byte - 'a';
  } else if (byte >= 'A' && byte <= 'Z') {
    kind = 26;
  } else if (byte >= '0' && byte <= '9') {
    kind = 27;
  } else if (byte >= ' ' && byte <= '/') {
    kind = 28 + (byte - ' ');
  } else if (byte >= ':' && byte <= '@') {
    kind = 44 + (byte - ':');
  } else if (byte >= '[' && byte <= ']') {
    kind = 51 + (byte - '[');
  } else if (byte == '_') {
    kind = 54;
  } else if (byte >= '{' && byte <= '}') {
    kind = 55 + (byte - '{');
  } else if (byte == '^' || byte == '`' || byte == '~') {
    kind = 58;
  } else if (byte == '\n') {
    kind = 59;
  } else if (byte == '\t' || byte == '\r') {
    kind = 60;
  }
  return kind;
}

constexpr std::array<uint64_t, 256> kinds_of_bytes() {
  std::array<uint64_t, 256> kinds{};
  for (uint32_t byte = 0; byte < kinds.size(); ++byte) {
    kinds[byte] = byte < 0x80 ? uint64_t{1} << number_of_kind(byte) : kBeyondAscii;
  }
  return kinds;
}

uint64_t kinds_of(const CodeSet& codes) {
  uint64_t kinds = ~kOdd;
  for (uint32_t code = 0; code < 128; ++code) {
    if (!holds(codes, code)) kinds &= ~kKindOfByte[code];
  }
  return holds(codes, kLastCode) ? kinds : kinds & ~kBeyondAscii;
}

}  // namespace

CodeSet beyond_ascii_codes() {
  CodeSet left_out = space_codes();
  left_out.push_back({0, 0x7F});
  return complement(normalized(left_out));
}

constexpr std::array<uint64_t, 256> kKindOfByte = kinds_of_bytes();

namespace {

// Whether some bytes are no character, or an odd one.
bool is_odd(StringView text) {
  static const CodeSet beyond = beyond_ascii_codes();
  for (size_t i = 0; i < text.size();) {
    if (static_cast<uint8_t>(text.data()[i]) < 0x80) {
      ++i;
      continue;
    }
    const Character character = read_utf8(text.data() + i, text.size() - i);
    if (!character.valid || !holds(beyond, character.code)) return true;
    i += character.bytes;
  }
  return false;
}

}  // namespace

void TokenTrie::add_kinds_of_tokens(const std::vector<Text>& texts, size_t tokens) {
  tokens_in_tree_.resize((tokens + 31) / 32);
  first_bytes_.resize(tokens);
  for (std::vector<uint32_t>& bits : tokens_with_) bits.resize(tokens_in_tree_.size());
  for (std::vector<uint32_t>& bits : tokens_with_some_) bits.resize(tokens_in_tree_.size());
  for (const auto& [text, ending] : texts) {
    uint64_t kinds = is_odd(text) ? kOdd : 0;
    for (size_t i = 0; i < text.size(); ++i) {
      kinds |= kKindOfByte[static_cast<uint8_t>(text.data()[i])];
    }
    const uint32_t word = ending.token() / 32, bit = 1u << (ending.token() % 32);
    tokens_in_tree_[word] |= bit;
    const auto first = static_cast<uint8_t>(text.data()[0]);
    first_bytes_[ending.token()] = first;
    if (first < tokens_from_.size()) {
      tokens_from_[first].resize(tokens_in_tree_.size());
      tokens_from_[first][word] |= bit;
    }
    for (size_t kind = 0; kind < tokens_with_.size(); ++kind) {
      if ((kinds >> kind & 1) == 0) continue;
      tokens_with_[kind][word] |= bit;
      tokens_with_some_[kind / 8][word] |= bit;
    }
  }
}

void TokenTrie::add_tokens_from(uint8_t byte, uint32_t* bits) const {
  const std::vector<uint32_t>& tokens = tokens_from_[byte];
  for (size_t i = 0; i < tokens.size(); ++i) bits[i] |= tokens[i];
}

void TokenTrie::add_tokens_from(uint8_t byte, const uint32_t* some, uint32_t* bits) const {
  const std::vector<uint32_t>& tokens = tokens_from_[byte];
  for (size_t i = 0; i < tokens.size(); ++i) bits[i] |= tokens[i] & some[i];
}

size_t TokenTrie::count_from(uint8_t byte) const {
  const uint32_t node = child(kRoot, byte);
  return node == kRoot ? 0 : endings_from(node).size();
}

size_t TokenTrie::cost_of_tokens(uint64_t kinds) {
  size_t cost = 0;
  for (size_t some = 0; some < 8; ++some) {
    const auto left_out = static_cast<uint8_t>(~kinds >> (8 * some));
    for (uint32_t rest = left_out == 0xFF ? 1 : left_out; rest != 0; rest &= rest - 1) ++cost;
  }
  return cost;
}

void TokenTrie::add_tokens_of(uint64_t kinds, uint32_t* bits) const {
  std::vector<const uint32_t*> left_out;
  for (size_t kind = 0; kind < tokens_with_.size(); ++kind) {
    if (kind % 8 == 0 && (~kinds >> kind & 0xFF) == 0xFF) {
      left_out.push_back(tokens_with_some_[kind / 8].data());
      kind += 7;
    } else if ((kinds >> kind & 1) == 0) {
      left_out.push_back(tokens_with_[kind].data());
    }
  }
  while (left_out.size() % kSetsAtOnce != 0) left_out.push_back(left_out.back());
  constexpr size_t kBlock = 256;  // words that stay near
  uint32_t without[kBlock];
  for (size_t begin = 0; begin < tokens_in_tree_.size(); begin += kBlock) {
    const size_t size = std::min(kBlock, tokens_in_tree_.size() - begin);
    std::fill_n(without, size, 0u);
    for (size_t at = 0; at < left_out.size(); at += kSetsAtOnce) {
      add_sets(&left_out[at], begin, size, without);
    }
    const uint32_t* const all = tokens_in_tree_.data() + begin;
    uint32_t* const added = bits + begin;
    for (size_t i = 0; i < size; ++i) added[i] |= all[i] & ~without[i];
  }
}

// What bytes are no character, or an odd one, may come after each beginning of their token.
void TokenTrie::add_kinds(uint32_t root, const std::vector<Text>& texts) {
  for (const auto& [text, ending] : texts) {
    if (!is_odd(text)) continue;
    uint32_t node = root;
    for (size_t i = 0; i < text.size(); ++i) {
      entries_[node].kinds_below |= kOdd;
      node = child(node, static_cast<uint8_t>(text.data()[i]));
    }
  }
  // Children stand after their parents.
  for (auto i = static_cast<uint32_t>(nodes_.size()); i-- > root;) {
    TrieEntry& entry = entries_[i];
    for (uint32_t at = entries_[i].children; at < end_of_children(i); ++at) {
      entry.kinds_below |= entries_[at].kinds_below | kKindOfByte[byte(at)];
      const uint32_t below = std::min(entries_[at].bytes_below + 1u, 255u);
      entry.bytes_below = std::max(entry.bytes_below, static_cast<uint8_t>(below));
    }
  }
}

// `first`: the ending of the first text.
void TokenTrie::add_children(uint32_t number, uint32_t depth, const std::vector<Text>& texts,
                             uint32_t first) {
  const auto children = static_cast<uint32_t>(nodes_.size());
  const uint32_t last = nodes_[number].last;
  uint32_t at = nodes_[number].first;
  while (at < last && texts[at - first].text.size() == depth) ++at;
  const uint32_t own = at - nodes_[number].first;
  if (own > 0) {
    const uint32_t token = endings_[nodes_[number].first].token();
    entries_[number].token = own == 1 ? token : TrieEntry::kManyTokens;
  }
  while (at < last) {
    TrieNode child;
    child.first = at;
    const char byte = texts[at - first].text.data()[depth];
    while (at < last && texts[at - first].text.data()[depth] == byte) ++at;
    child.last = at;
    nodes_.push_back(child);
    entries_.emplace_back();
    entries_.back().byte = static_cast<uint8_t>(byte);
  }
  entries_[number].children = children;
  entries_[number].child_count = static_cast<uint16_t>(nodes_.size() - children);
}

// Sorts the texts; returns the root.
uint32_t TokenTrie::add_tree(std::vector<Text>* texts) {
  std::sort(texts->begin(), texts->end(), [](const Text& a, const Text& b) {
    const size_t shorter = std::min(a.text.size(), b.text.size());
    const int compared = std::memcmp(a.text.data(), b.text.data(), shorter);
    if (compared != 0) return compared < 0;
    if (a.text.size() != b.text.size()) return a.text.size() < b.text.size();
    if (a.ending.before() != b.ending.before()) return a.ending.before() < b.ending.before();
    return a.ending.token() < b.ending.token();
  });
  const auto root = static_cast<uint32_t>(nodes_.size());
  const auto first = static_cast<uint32_t>(endings_.size());
  for (const Text& text : *texts) endings_.push_back(text.ending);
  nodes_.emplace_back();
  entries_.emplace_back();
  nodes_.back().first = first;
  nodes_.back().last = static_cast<uint32_t>(endings_.size());
  struct Open {
    uint32_t node, depth;
  };
  std::vector<Open> open = {{root, 0}};
  while (!open.empty()) {
    const auto [node, depth] = open.back();
    open.pop_back();
    add_children(node, depth, *texts, first);
    for (uint32_t i = entries_[node].child_count; i-- > 0;) {
      open.push_back({entries_[node].children + i, depth + 1});
    }
  }
  add_kinds(root, *texts);
  return root;
}

void TokenTrie::add_class(const CodeSet& codes, const std::vector<Text>& texts, size_t tokens,
                          std::vector<Text>* rests) {
  classes_.emplace_back();
  TextClass& made = classes_.back();
  made.codes = codes;
  made.kinds = kinds_of(codes);
  for (std::vector<uint32_t>& bits : made.up_to) bits.resize((tokens + 31) / 32);
  const Beginnings beginnings(made.codes);
  for (uint32_t byte = 0; byte < 256; ++byte) {
    made.begins[byte] = byte < 128 ? holds(codes, byte) : (made.kinds & kBeyondAscii) != 0;
    if (made.begins[byte]) made.some_kinds |= kKindOfByte[byte];
  }
  std::vector<Text> leaving;
  for (const Text& whole : texts) {
    const StringView text = whole.text;
    if (!made.begins[static_cast<uint8_t>(text.data()[0])]) continue;
    const uint32_t token = whole.ending.token();
    uint32_t characters = 0;
    const size_t bytes = beginnings.read(text, &characters);
    for (size_t i = 0; i < bytes; ++i) made.bytes[static_cast<uint8_t>(text.data()[i])] = true;
    if (bytes < text.size()) {
      leaving.push_back(whole);
      rests->push_back({{text.data() + bytes, text.size() - bytes}, Ending(token, characters)});
      made.longest = std::max(made.longest, characters);
    } else {
      made.up_to[characters][token / 32] |= 1u << (token % 32);
      ++made.sizes[characters];
    }
  }
  for (size_t n = 1; n <= TextClass::kMaxCharacters; ++n) {
    made.sizes[n] += made.sizes[n - 1];
    for (size_t i = 0; i < made.up_to[n].size(); ++i) made.up_to[n][i] |= made.up_to[n - 1][i];
  }
  made.leaving = add_tree(&leaving);
}

// Of a node of the first tree.
uint32_t TokenTrie::rests_after(uint32_t node, size_t depth, const std::vector<Text>& texts) {
  const Beginnings beginnings(classes_[0].codes);
  std::vector<Text> rests;
  for (uint32_t i = nodes_[node].first; i < nodes_[node].last; ++i) {
    const StringView text(texts[i].text.data() + depth, texts[i].text.size() - depth);
    if (text.empty()) continue;  // the token of the node
    uint32_t characters = 0;
    const size_t bytes = beginnings.read(text, &characters);
    rests.push_back(
        {{text.data() + bytes, text.size() - bytes}, Ending(texts[i].ending.token(), characters)});
  }
  return add_tree(&rests);
}

// Where the text of strings begins: after quotation marks, and what comes after a backslash.
void TokenTrie::add_rests_after(const std::vector<Text>& texts) {
  constexpr size_t kSome = 32, kMostBytes = 4;
  struct Open {
    uint32_t node, other;  // of the first tree, and of that of others
    size_t depth;
  };
  std::vector<Open> open = {{kRoot, others_, 0}};
  while (!open.empty()) {
    const Open at = open.back();
    open.pop_back();
    for (uint32_t i = entries_[at.node].children; i < end_of_children(at.node); ++i) {
      if (nodes_[i].last - nodes_[i].first < kSome) continue;
      const uint32_t other = at.other == kRoot && at.depth > 0 ? kRoot : child(at.other, byte(i));
      if (at.depth + 1 < kMostBytes) open.push_back({i, other, at.depth + 1});
      const bool is_escaped = std::strchr("\\/bfnrtu", byte(i)) != nullptr && byte(i) != '\0';
      if (byte(i) != '"' && (at.depth > 0 || !is_escaped)) continue;
      const uint32_t rests = rests_after(i, at.depth + 1, texts);
      entries_[i].rests = rests;
      const bool is_same = other != kRoot && endings_from(i).size() == endings_from(other).size();
      if (is_same) entries_[other].rests = rests;
    }
  }
}

void TokenTrie::add_rests(std::vector<std::vector<Text>> rests) {
  for (size_t i = 0; i < rests.size(); ++i) classes_[i].rests = add_tree(&rests[i]);
  lengths_.resize(nodes_.size() - first_rest_);
  // Children stand after their parents.
  for (auto node = static_cast<uint32_t>(nodes_.size()); node-- > first_rest_;) {
    uint64_t& lengths = lengths_[node - first_rest_];
    for (const Ending& ending : endings_at(node)) lengths |= uint64_t{1} << ending.before();
    for (uint32_t at = entries_[node].children; at < end_of_children(node); ++at) {
      lengths |= lengths_from(at);
    }
  }
}

// Not of the rests, whose tokens are taken by the lengths of the text before.
void TokenTrie::add_large(size_t tokens) {
  for (uint32_t node = 0; node < first_rest_; ++node) {
    const Span<const Ending> endings = endings_from(node);
    if (endings.size() < kVeryMany) continue;
    std::vector<uint32_t>& bits = large_[node];
    bits.resize((tokens + 31) / 32);
    for (const Ending& ending : endings) {
      bits[ending.token() / 32] |= 1u << (ending.token() % 32);
    }
  }
}

namespace {

// Of a character as words have it; '\0' if they do not.
char form_of(char c) {
  if (c >= 'a' && c <= 'z') return 'a';
  if (c >= 'A' && c <= 'Z') return 'A';
  if (c >= '0' && c <= '9') return '0';
  return c == ' ' ? ' ' : '\0';
}

}  // namespace

std::bitset<256> TokenTrie::bytes_of_words() {
  std::bitset<256> bytes;
  for (size_t byte = 0; byte < 128; ++byte) bytes[byte] = form_of(static_cast<char>(byte)) != '\0';
  return bytes;
}

void TokenTrie::add_words(const std::vector<Text>& texts) {
  std::vector<Text> words, others;
  std::string forms;
  for (const Text& text : texts) forms.append(text.text.data(), text.text.size());
  char* form = &forms[0];
  for (const Text& text : texts) {
    const StringView written(form, text.text.size());
    std::transform(form, form + written.size(), form, form_of);
    form += written.size();
    if (std::memchr(written.data(), '\0', written.size()) != nullptr) {
      others.push_back(text);
      continue;
    }
    words.push_back({written, text.ending});
  }
  words_ = add_tree(&words);
  others_ = add_tree(&others);
}

TokenTrie::TokenTrie(const std::vector<std::string>& pieces) : suffixes_(pieces) {
  std::vector<Text> texts;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const StringView text(pieces[i].data(), pieces[i].size());
    if (text.empty() || text.size() > kMaxPiece) continue;
    texts.push_back({text, Ending(static_cast<uint32_t>(i))});
    longest_ = std::max(longest_, text.size());
  }
  add_tree(&texts);
  add_kinds_of_tokens(texts, pieces.size());
  add_words(texts);
  std::vector<std::vector<Text>> rests;
  for (const CodeSet& codes : text_classes()) {
    rests.emplace_back();
    add_class(codes, texts, pieces.size(), &rests.back());
  }
  first_rest_ = static_cast<uint32_t>(nodes_.size());
  add_rests_after(texts);
  add_rests(std::move(rests));
  add_large(pieces.size());
  nodes_.shrink_to_fit();
  entries_.shrink_to_fit();
  endings_.shrink_to_fit();
}

uint32_t TokenTrie::child(uint32_t node, uint8_t byte) const {
  const auto begin = entries_.begin() + entries_[node].children;
  const auto end = begin + entries_[node].child_count;
  const auto at = std::lower_bound(
      begin, end, byte, [](const TrieEntry& entry, uint8_t other) { return entry.byte < other; });
  return at != end && at->byte == byte ? static_cast<uint32_t>(at - entries_.begin()) : kRoot;
}

int32_t TokenTrie::longest_prefix(StringView text) const {
  int32_t token = -1;
  uint32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    node = child(node, static_cast<uint8_t>(text.data()[i]));
    if (node == kRoot) break;
    const Span<const Ending> endings = endings_at(node);
    if (!endings.empty()) token = static_cast<int32_t>(endings[endings.size() - 1].token());
  }
  return token;
}

}  // namespace rushlight::llm::grammar
