#include "rushlight/llm/tokenizer/normalizer/sentence_piece.h"

#include <algorithm>
#include <cstring>

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

// Where normalised text is written: as UTF-8.
class TextOut {
 public:
  TextOut(const Table& table, uint32_t flags, std::string* out)
      : table_(table),
        space_((flags & kEscapeSpaces) != 0 ? StringView(kSpaceMark) : StringView(" ")),
        out_(*out),
        begin_(out->size()) {}

  void add(StringView text) { out_.append(text.data(), text.size()); }
  void add_space() { add(space_); }
  bool ends_with_space() const {
    const size_t size = space_.size();
    return out_.size() - begin_ >= size &&
           std::memcmp(out_.data() + out_.size() - size, space_.data(), size) == 0;
  }
  void drop_space() { out_.resize(out_.size() - space_.size()); }
  // Adds the characters from `begin` on that stay as they are; returns their end.
  size_t add_plain(StringView text, size_t begin) {
    const auto joins = [&](uint32_t, uint8_t own_class, uint32_t next) {
      return (own_class & kBeginsReplaced) != 0 &&
             (table_.charsmap_class(next) & kSecondReplaced) != 0;
    };
    const size_t end = end_of_plain(table_, text, begin, joins);
    add({text.data() + begin, end - begin});
    return end;
  }

 private:
  const Table& table_;
  StringView space_;
  std::string& out_;
  size_t begin_;
};

// Reads the characters that the map keeps as letters: the next place, or where one is not kept.
class LetterReader {
 public:
  LetterReader(const Table& table, StringView text)
      : text_(text),
        class_pages_(table.charsmap_pages.data()),
        classes_(table.charsmap_classes.data()),
        label_pages_(table.piece_trie.label_pages.data()),
        labels_(table.piece_trie.labels.data()) {}

  // From `i` on those that begin before `end`.
  size_t read(size_t i, size_t end, Letters::Cursor* letters) const {
    Letters::Cursor cursor = *letters;
    while (i < end) {
      if (static_cast<uint8_t>(text_.data()[i]) < 0x80) {
        const size_t plain = read_ascii(i, end, &cursor);
        if (plain == i) break;
        i = plain;
        continue;
      }
      const Point point = read_point(text_.data() + i, text_.size() - i);
      if (point.code > 0x10FFFF) break;
      const uint8_t own_class = page(class_pages_, classes_, point.code)[point.code & 255];
      if (own_class != 0 && !is_kept(own_class, point.code, i + point.bytes)) break;
      cursor.put(point.code, page(label_pages_, labels_, point.code)[point.code & 255]);
      i += point.bytes;
    }
    *letters = cursor;
    return i;
  }

 private:
  template <class T>
  static const T* page(const uint16_t* pages, const T* values, uint32_t code) {
    return values + (size_t{pages[code >> 8]} << 8);
  }
  // ASCII characters, of which there is one.
  size_t read_ascii(size_t i, size_t end, Letters::Cursor* letters) const {
    const uint8_t* classes = page(class_pages_, classes_, 0);
    const uint32_t* labels = page(label_pages_, labels_, 0);
    // Where the next one is ASCII as well, a character's class says all.
    for (uint64_t eight; end - i >= 8; i += 7) {
      std::memcpy(&eight, text_.data() + i, 8);
      if ((eight & 0x8080808080808080u) != 0) break;
      for (size_t j = 0; j < 7; ++j) {
        const uint32_t code = eight >> (8 * j) & 0xFF;
        if ((classes[code] & kReplacedAlone) != 0) return i + j;
        letters->put(code, labels[code]);
      }
    }
    for (; i < end; ++i) {
      const auto code = static_cast<uint8_t>(text_.data()[i]);
      if (code >= 0x80 || !is_kept(classes[code], code, i + 1)) break;
      letters->put(code, labels[code]);
    }
    return i;
  }
  // As end_of_plain has it, of a character with the one that stands at `next`.
  bool is_kept(uint8_t own_class, uint32_t code, size_t next) const {
    if ((own_class & (kReplacedAlone | kBeginsReplaced)) == 0) return true;
    if ((own_class & kReplacedAlone) != 0) return false;
    if (next == text_.size()) return true;
    const uint32_t following = read_point(text_.data() + next, text_.size() - next).code;
    if ((code | following) < 0x80) return true;
    return following <= 0x10FFFF &&
           (page(class_pages_, classes_, following)[following & 255] & kSecondReplaced) == 0;
  }

  StringView text_;
  const uint16_t* class_pages_;
  const uint8_t* classes_;
  const uint16_t* label_pages_;
  const uint32_t* labels_;
};

// The same as letters, each of which is read once.
class LettersOut {
 public:
  LettersOut(const Table& table, uint32_t flags, Letters* out)
      : table_(table), space_((flags & kEscapeSpaces) != 0 ? kLowBlock : ' '), out_(*out) {}

  void add(StringView text) { out_.add(text); }
  void add_space() { out_.add(space_); }
  bool ends_with_space() const { return out_.ends_with(space_); }
  void drop_space() { out_.drop_last(); }
  size_t add_plain(StringView text, size_t begin) {
    const bool is_classed =
        !table_.charsmap_pages.empty() && !table_.piece_trie.label_pages.empty();
    if (!is_classed) return begin;
    const LetterReader reader(table_, text);
    size_t i = begin;
    for (size_t end = begin; i < text.size() && i >= end;) {
      end = std::min(text.size(), i + kBlock);
      Letters::Cursor cursor = out_.room(end - i);
      i = reader.read(i, end, &cursor);
      out_.end_at(cursor);
    }
    return i;
  }

 private:
  static constexpr size_t kBlock = 4096;  // bytes

  const Table& table_;
  uint32_t space_;
  Letters& out_;
};

// Writes what replaces some characters; returns whether it ends with a space.
template <class Out>
bool add_replacement(StringView text, Out* out) {
  for (size_t i = 0; i < text.size();) {
    const void* space = std::memchr(text.data() + i, ' ', text.size() - i);
    const size_t end = space != nullptr
                           ? static_cast<size_t>(static_cast<const char*>(space) - text.data())
                           : text.size();
    if (end > i) out->add({text.data() + i, end - i});
    if (space != nullptr) out->add_space();
    i = end + 1;
  }
  return text.data()[text.size() - 1] == ' ';
}

template <class Out>
void write_normalized(const Table& table, uint32_t flags, StringView text, bool is_last, Out out) {
  const bool collapse = (flags & kCollapseSpaces) != 0;
  const auto rest = [&](size_t i) { return StringView(text.data() + i, text.size() - i); };
  size_t i = 0;
  while (collapse && i < text.size()) {
    const Replacement first = next(table, rest(i));
    if (first.text != StringView(" ")) break;
    i += first.replaced;
  }
  if (i == text.size()) return;
  const bool dummy = (flags & kDummyPrefix) != 0, suffix = (flags & kSuffix) != 0;
  if (dummy && !suffix) out.add_space();
  bool after_space = collapse;
  const bool keeps_space = (table.charsmap_class(' ') & kKeptSpace) != 0;
  while (i < text.size()) {
    if (keeps_space && text.data()[i] == ' ') {
      if (!after_space) out.add_space();
      after_space = collapse;
      ++i;
      continue;
    }
    const size_t plain = out.add_plain(text, i);
    if (plain > i) {
      after_space = false;
      i = plain;
      continue;
    }
    const Replacement one = next(table, rest(i));
    i += one.replaced;
    size_t at = 0;
    while (after_space && at < one.text.size() && one.text.data()[at] == ' ') ++at;
    if (at == one.text.size()) continue;
    const StringView written(one.text.data() + at, one.text.size() - at);
    after_space = add_replacement(written, &out) && collapse;
  }
  if (!is_last) {
    // The space of the next part is the one that is here.
    if (after_space && out.ends_with_space()) out.drop_space();
    return;
  }
  while (collapse && out.ends_with_space()) out.drop_space();
  if (dummy && suffix) out.add_space();
}

}  // namespace

void sentence_piece(const Table& table, uint32_t flags, StringView text, std::string* out) {
  write_normalized(table, flags, text, true, TextOut(table, flags, out));
}

void sentence_piece(const Table& table, uint32_t flags, StringView text, bool is_last,
                    Letters* out) {
  write_normalized(table, flags, text, is_last, LettersOut(table, flags, out));
}

}  // namespace rushlight::llm
