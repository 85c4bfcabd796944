#include "rushlight/llm/tokenizer/normalizer/sentence_piece.h"

#include "rushlight/llm/tokenizer/normalizer/charsmap.h"
#include "rushlight/llm/tokenizer/operations.h"
#include "rushlight/llm/tokenizer/unicode/unicode.h"

namespace rushlight::llm {
namespace {

constexpr char kSpaceMark[] = "\xE2\x96\x81";  // U+2581

// The bytes of the longest text of `trie` that `text` begins with.
size_t longest_start(const Trie& trie, StringView text) {
  size_t longest = 0;
  if (trie.empty()) return 0;
  uint32_t node = trie.starts[static_cast<uint8_t>(text.data()[0])];
  for (size_t i = 1; node != 0; ++i) {
    if (trie.values[node] != kNone) longest = i;
    node = i < text.size() ? trie.child(node, static_cast<uint8_t>(text.data()[i])) : 0;
  }
  return longest;
}

// What the next characters become.
Replacement next(const Table& table, StringView text) {
  const size_t kept = longest_start(table.kept, text);
  if (kept != 0) return {{text.data(), kept}, kept};
  const Replacement replacement = find_replacement(table, text, true);
  if (replacement.replaced != 0) return replacement;
  const Point point = read_point(text.data(), text.size());
  return {{text.data(), point.bytes}, point.bytes};
}

bool ends_with(const std::string& text, StringView end, size_t from) {
  return text.size() - from >= end.size() &&
         std::memcmp(text.data() + text.size() - end.size(), end.data(), end.size()) == 0;
}

}  // namespace

void sentence_piece(const Table& table, uint32_t flags, StringView text, bool is_last,
                    std::string* out) {
  const bool collapse = (flags & kCollapseSpaces) != 0;
  const StringView space = (flags & kEscapeSpaces) != 0 ? StringView(kSpaceMark) : StringView(" ");
  const auto add_space = [&] { out->append(space.data(), space.size()); };
  const auto rest = [&](size_t i) { return StringView(text.data() + i, text.size() - i); };
  size_t i = 0;
  while (collapse && i < text.size()) {
    const Replacement first = next(table, rest(i));
    if (first.text != StringView(" ")) break;
    i += first.replaced;
  }
  if (i == text.size()) return;
  const bool dummy = (flags & kDummyPrefix) != 0, suffix = (flags & kSuffix) != 0;
  const size_t begin = out->size();
  if (dummy && !suffix) add_space();
  bool after_space = collapse;
  const auto joins = [&](uint32_t, uint8_t own_class, uint32_t following) {
    return (own_class & kBeginsReplaced) != 0 &&
           (table.charsmap_class(following) & kSecondReplaced) != 0;
  };
  const bool keeps_space = (table.charsmap_class(' ') & kKeptSpace) != 0;
  while (i < text.size()) {
    if (keeps_space && text.data()[i] == ' ') {
      if (!after_space) add_space();
      after_space = collapse;
      ++i;
      continue;
    }
    const size_t plain = end_of_plain(table, text, i, joins);
    if (plain > i) {
      out->append(text.data() + i, plain - i);
      after_space = false;
      i = plain;
      continue;
    }
    const Replacement one = next(table, rest(i));
    i += one.replaced;
    size_t at = 0;
    while (after_space && at < one.text.size() && one.text.data()[at] == ' ') ++at;
    if (at == one.text.size()) continue;
    for (; at < one.text.size(); ++at) {
      const char c = one.text.data()[at];
      if (c == ' ') {
        add_space();
      } else {
        out->push_back(c);
      }
    }
    after_space = collapse && one.text.data()[one.text.size() - 1] == ' ';
  }
  if (!is_last) {
    // The space of the next part is the one that is here.
    if (after_space && ends_with(*out, space, begin)) out->resize(out->size() - space.size());
    return;
  }
  while (collapse && ends_with(*out, space, begin)) out->resize(out->size() - space.size());
  if (dummy && suffix) add_space();
}

}  // namespace rushlight::llm
