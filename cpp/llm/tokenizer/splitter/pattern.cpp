#include "rushlight/llm/tokenizer/splitter/pattern.h"

#include "rushlight/llm/tokenizer/unicode/unicode.h"

namespace rushlight::llm {
namespace {

// A character with its classes; at the end of the text one of no bytes and no class.
struct Item {
  uint32_t code = 0, bytes = 0;
  uint16_t classes = 0;

  bool is(uint16_t wanted) const { return (classes & wanted) != 0; }
  bool is_line_end() const { return code == '\n' || code == '\r'; }
};

class Matcher {
 public:
  explicit Matcher(StringView text) : text_(text.data()), size_(text.size()) {}

  size_t match(Alternative alternative, size_t start) const;

 private:
  Item at(size_t i) const {
    if (i >= size_) return {};
    if (is_ascii(i)) return {byte(i), 1, kClasses[byte(i)]};
    const Point point = read_point(text_ + i, size_ - i);
    return {point.code, point.bytes, classes_of(point.code)};
  }
  // The end of the run of characters of some of the classes.
  size_t skip(size_t i, uint16_t classes) const {
    for (;;) {
      while (i < size_ && is_ascii(i) && (kClasses[byte(i)] & classes) != 0) ++i;
      if (i == size_ || is_ascii(i)) return i;
      const Item item = at(i);
      if (!item.is(classes)) return i;
      i += item.bytes;
    }
  }
  size_t skip_others(size_t i, uint16_t classes) const {
    for (;;) {
      while (i < size_ && is_ascii(i) && (kClasses[byte(i)] & classes) == 0) ++i;
      if (i == size_ || is_ascii(i)) return i;
      const Item item = at(i);
      if (item.is(classes)) return i;
      i += item.bytes;
    }
  }
  uint8_t byte(size_t i) const { return static_cast<uint8_t>(text_[i]); }
  bool is_ascii(size_t i) const { return byte(i) < 0x80; }
  size_t skip_bytes(size_t i, char a, char b, char c) const {
    while (i < size_ && (text_[i] == a || text_[i] == b || text_[i] == c)) ++i;
    return i;
  }
  size_t after_space(size_t i) const { return i < size_ && text_[i] == ' ' ? i + 1 : i; }

  size_t contraction(size_t start, bool any_case) const;
  size_t numbers(size_t start, int most) const;
  size_t run(size_t start, size_t from, uint16_t classes) const;
  size_t others(size_t start, uint16_t not_these, char a, char b, char c) const;
  size_t prefixed(Alternative alternative, size_t start) const;
  size_t word(Alternative alternative, size_t start) const;
  size_t lower_word(size_t start) const;
  size_t upper_word(size_t start) const;
  size_t spaces(Alternative alternative, size_t start) const;

  const char* text_;
  size_t size_;
};

// 's 't 'm 'd 're 've 'll. The long s is an s where case does not matter.
size_t Matcher::contraction(size_t start, bool any_case) const {
  if (start + 1 >= size_ || text_[start] != '\'') return start;
  const auto letter = [&](size_t i) -> char {
    if (i >= size_) return 0;
    const char c = text_[i];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const char first = letter(start + 1), second = letter(start + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return start + 2;
  if (any_case && at(start + 1).code == 0x17F) return start + 3;
  const bool two = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                   (first == 'l' && second == 'l');
  return two ? start + 3 : start;
}

size_t Matcher::numbers(size_t start, int most) const {
  size_t i = start;
  for (Item item = at(i); most > 0 && item.is(kNumber); item = at(i), --most) i += item.bytes;
  return i;
}

// `from` is `start`, or what follows an optional character there.
size_t Matcher::run(size_t start, size_t from, uint16_t classes) const {
  const size_t end = skip(from, classes);
  return end > from ? end : start;
}

size_t Matcher::others(size_t start, uint16_t not_these, char a, char b, char c) const {
  const size_t from = after_space(start);
  const size_t end = skip_others(from, not_these);
  return end > from ? skip_bytes(end, a, b, c) : start;
}

// With the optional character before it if that is followed by a match, otherwise without.
size_t Matcher::prefixed(Alternative alternative, size_t start) const {
  const Item first = at(start);
  if (!first.is(kLetter | kNumber) && !first.is_line_end() && first.bytes != 0) {
    const size_t from = start + first.bytes;
    const size_t end = word(alternative, from);
    if (end > from) return end;
  }
  return word(alternative, start);
}

size_t Matcher::word(Alternative alternative, size_t start) const {
  switch (alternative) {
    case Alternative::PrefixLetters:
      return skip(start, kLetter);
    case Alternative::PrefixLettersMarks:
      return skip(start, kLetter | kMark);
    case Alternative::PrefixLowerWord:
    case Alternative::PrefixLowerWordOnly: {
      const size_t end = lower_word(start);
      const bool joined = alternative == Alternative::PrefixLowerWord && end > start;
      return joined ? contraction(end, true) : end;
    }
    default: {
      const size_t end = upper_word(start);
      const bool joined = alternative == Alternative::PrefixUpperWord && end > start;
      return joined ? contraction(end, true) : end;
    }
  }
}

// Letters without case, and marks, count as upper case and as lower case.
bool is_upper(const Item& item) { return item.is(kLetter | kMark) && !item.is(kLower); }
bool is_lower(const Item& item) { return item.is(kLetter | kMark) && !item.is(kUpper); }

// [upper]*[lower]+: as many upper ones as leave a lower one.
size_t Matcher::lower_word(size_t start) const {
  size_t i = start, last_lower = start;
  for (Item item = at(i); is_upper(item); item = at(i)) {
    i += item.bytes;
    if (is_lower(item)) last_lower = i;
  }
  if (!is_lower(at(i))) return last_lower;
  for (Item item = at(i); is_lower(item); item = at(i)) i += item.bytes;
  return i;
}

// [upper]+[lower]*
size_t Matcher::upper_word(size_t start) const {
  size_t i = start;
  for (Item item = at(i); is_upper(item); item = at(i)) i += item.bytes;
  if (i == start) return start;
  for (Item item = at(i); is_lower(item); item = at(i)) i += item.bytes;
  return i;
}

size_t Matcher::spaces(Alternative alternative, size_t start) const {
  size_t end = start, last = start, after_line = start;
  for (Item item = at(end); item.is(kSpace); item = at(end)) {
    last = end;
    end += item.bytes;
    if (item.is_line_end()) after_line = end;
  }
  switch (alternative) {
    case Alternative::Lines:
      return after_line;
    case Alternative::SpacesBeforeText:
      return end == size_ ? end : last;
    case Alternative::SpacesAtEnd:
      return end == size_ ? end : start;
    default:
      return end;
  }
}

size_t Matcher::match(Alternative alternative, size_t start) const {
  switch (alternative) {
    case Alternative::Contraction:
      return contraction(start, false);
    case Alternative::AnyCaseContraction:
      return contraction(start, true);
    case Alternative::SpaceLetters:
      return run(start, after_space(start), kLetter);
    case Alternative::SpaceNumbers:
      return run(start, after_space(start), kNumber);
    case Alternative::SpaceOthers:
      return others(start, kSpace | kLetter | kNumber, 0, 0, 0);
    case Alternative::SpaceOthersLines:
      return others(start, kSpace | kLetter | kNumber, '\r', '\n', '\n');
    case Alternative::SpaceOthersPaths:
      return others(start, kSpace | kLetter | kNumber, '\r', '\n', '/');
    case Alternative::SpaceOthersNoMarks:
      return others(start, kSpace | kLetter | kNumber | kMark, '\r', '\n', '\n');
    case Alternative::PrefixLetters:
    case Alternative::PrefixLettersMarks:
    case Alternative::PrefixLowerWord:
    case Alternative::PrefixUpperWord:
    case Alternative::PrefixLowerWordOnly:
    case Alternative::PrefixUpperWordOnly:
      return prefixed(alternative, start);
    case Alternative::OneNumber:
      return numbers(start, 1);
    case Alternative::ThreeNumbers:
      return numbers(start, 3);
    case Alternative::OneSpace: {
      const Item item = at(start);
      return item.is(kSpace) ? start + item.bytes : start;
    }
    default:
      return spaces(alternative, start);
  }
}

}  // namespace

size_t match_pattern(Span<const uint8_t> alternatives, StringView text, size_t start) {
  const Matcher matcher(text);
  for (const uint8_t alternative : alternatives) {
    const size_t end = matcher.match(static_cast<Alternative>(alternative), start);
    if (end > start) return end;
  }
  return start;
}

}  // namespace rushlight::llm
