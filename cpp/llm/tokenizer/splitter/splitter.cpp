#include "rushlight/llm/tokenizer/splitter/splitter.h"

#include <string>

#include "rushlight/llm/tokenizer/splitter/pattern.h"
#include "rushlight/llm/tokenizer/unicode/unicode.h"

namespace rushlight::llm {
namespace {

StringView part(StringView text, size_t begin, size_t end) {
  return {text.data() + begin, end - begin};
}

bool starts_with(StringView text, StringView start) {
  return text.size() >= start.size() && std::memcmp(text.data(), start.data(), start.size()) == 0;
}

// Where `wanted`, which is not empty, stands next in `text`, or the size of `text`.
size_t find_text(StringView text, size_t from, StringView wanted) {
  while (from < text.size()) {
    const void* next = std::memchr(text.data() + from, wanted.data()[0], text.size() - from);
    if (next == nullptr) break;
    const auto at = static_cast<size_t>(static_cast<const char*>(next) - text.data());
    if (starts_with(part(text, at, text.size()), wanted)) return at;
    from = at + 1;
  }
  return text.size();
}

// Splits at delimiters. `find(from, &end)` is where the next one stands, or the size of the text;
// `emit` gets begin and end of each piece.
template <class Find, class Emit>
class Delimiting {
 public:
  Delimiting(StringView text, Behavior behavior, const Find& find, const Emit& emit)
      : text_(text), behavior_(behavior), find_(find), emit_(emit) {}

  void run() {
    for (size_t begin = 0; begin < text_.size();) {
      size_t end = text_.size();
      const size_t at = find_(begin, &end);
      if (at > begin) segment(begin, at, false);
      if (at < text_.size()) segment(at, end, true);
      begin = end;
    }
    flush();
  }

 private:
  void segment(size_t begin, size_t end, bool is_match) {
    switch (behavior_) {
      case Behavior::Removed:
        if (!is_match) emit_(begin, end);
        return;
      case Behavior::Isolated:
        emit_(begin, end);
        return;
      case Behavior::Contiguous:
        if (!waiting_ || was_match_ != is_match) start(begin);
        break;
      case Behavior::MergedWithPrevious:
        if (!waiting_ || !is_match || was_match_) start(begin);
        break;
      case Behavior::MergedWithNext:
        if (!waiting_ || is_match || !was_match_) start(begin);
        break;
    }
    end_ = end;
    was_match_ = is_match;
  }
  void start(size_t begin) {
    flush();
    begin_ = begin;
    waiting_ = true;
  }
  void flush() {
    if (waiting_) emit_(begin_, end_);
    waiting_ = false;
  }

  StringView text_;
  Behavior behavior_;
  const Find& find_;
  const Emit& emit_;
  size_t begin_ = 0, end_ = 0;
  bool waiting_ = false, was_match_ = false;
};

class Splitter {
 public:
  Splitter(const Table& table, Scratch* scratch, WordSink* sink)
      : table_(table), scratch_(scratch), sink_(sink) {
    if (scratch->pieces.size() < table.splitter.size()) {
      scratch->pieces.resize(table.splitter.size());
    }
  }

  void split(size_t index, StringView text, bool at_start) {
    if (text.empty()) return;
    if (index == table_.splitter.size()) {
      sink_->word(text);
      return;
    }
    const Operation& operation = table_.splitter[index];
    const StringView wanted = table_.text(operation.text, operation.text_size);
    const auto behavior = static_cast<Behavior>(operation.a);
    switch (static_cast<SplitKind>(operation.kind)) {
      case kSplitPattern:
        return split_pattern(index, text, at_start, wanted);
      case kSplitText:
        return split_text(index, text, at_start, behavior, wanted);
      case kSplitDigits:
        return characters(index, text, at_start,
                          operation.a != 0 ? Behavior::Isolated : Behavior::Contiguous, is_digit);
      case kSplitSpaces:
        return classes(index, text, at_start, Behavior::Removed, kSpace);
      case kSplitPunctuation:
        return classes(index, text, at_start, behavior, kPunctuation);
      case kSplitBert:
        return split_bert(index, text, at_start);
      case kSplitWords:
        return split_pieces(index, text, at_start);
      case kMetaspace:
        return metaspace(index, text, at_start, operation, wanted);
      default:
        return add_space(index, text, at_start);
    }
  }

 private:
  template <class Find>
  void delimit(size_t index, StringView text, bool at_start, Behavior behavior, const Find& find) {
    const auto emit = [&](size_t begin, size_t end) {
      split(index + 1, part(text, begin, end), at_start && begin == 0);
    };
    Delimiting<Find, decltype(emit)>(text, behavior, find, emit).run();
  }

  void split_text(size_t index, StringView text, bool at_start, Behavior behavior,
                  StringView wanted) {
    delimit(index, text, at_start, behavior, [&](size_t from, size_t* end) {
      const size_t at = find_text(text, from, wanted);
      if (at < text.size()) *end = at + wanted.size();
      return at;
    });
  }

  // Each character of a class is a delimiter.
  void classes(size_t index, StringView text, bool at_start, Behavior behavior, uint16_t wanted) {
    characters(index, text, at_start, behavior,
               [=](uint32_t code) { return (classes_of(code) & wanted) != 0; });
  }

  // At the characters that `is_wanted`.
  template <class Wanted>
  void characters(size_t index, StringView text, bool at_start, Behavior behavior,
                  const Wanted& is_wanted) {
    delimit(index, text, at_start, behavior, [&](size_t i, size_t* end) {
      while (i < text.size()) {
        const Point point = read_point(text.data() + i, text.size() - i);
        if (is_wanted(point.code)) {
          *end = i + point.bytes;
          break;
        }
        i += point.bytes;
      }
      return i;
    });
  }

  void split_pattern(size_t index, StringView text, bool at_start, StringView alternatives) {
    const Span<const uint8_t> list(reinterpret_cast<const uint8_t*>(alternatives.data()),
                                   alternatives.size());
    delimit(index, text, at_start, Behavior::Isolated, [&](size_t i, size_t* end) {
      while (i < text.size()) {
        const size_t match = match_pattern(list, text, i);
        if (match > i) {
          *end = match;
          break;
        }
        i += read_point(text.data() + i, text.size() - i).bytes;
      }
      return i;
    });
  }

  // White space, which is dropped, then punctuation.
  void split_bert(size_t index, StringView text, bool at_start) {
    const auto is = [&](size_t i, uint16_t wanted, size_t* end) {
      const Point point = read_point(text.data() + i, text.size() - i);
      *end = i + point.bytes;
      return (classes_of(point.code) & wanted) != 0;
    };
    size_t begin = 0, next = 0;
    for (size_t i = 0; i < text.size(); i = next) {
      const bool space = is(i, kSpace, &next);
      if (!space && !is(i, kPunctuation, &next)) continue;
      if (i > begin) split(index + 1, part(text, begin, i), at_start && begin == 0);
      if (!space) split(index + 1, part(text, i, next), at_start && i == 0);
      begin = next;
    }
    if (text.size() > begin) {
      split(index + 1, part(text, begin, text.size()), at_start && begin == 0);
    }
  }

  // \w+|[^\w\s]+
  void split_pieces(size_t index, StringView text, bool at_start) {
    const auto kind = [&](size_t i, size_t* end) {
      const Point point = read_point(text.data() + i, text.size() - i);
      *end = i + point.bytes;
      const uint16_t classes = classes_of(point.code);
      return (classes & kWord) != 0 ? 1 : (classes & kSpace) != 0 ? 0 : 2;
    };
    for (size_t begin = 0; begin < text.size();) {
      size_t end = begin, next = begin;
      const int wanted = kind(begin, &end);
      while (end < text.size() && kind(end, &next) == wanted) end = next;
      if (wanted != 0) split(index + 1, part(text, begin, end), at_start && begin == 0);
      begin = end;
    }
  }

  void metaspace(size_t index, StringView text, bool at_start, const Operation& operation,
                 StringView mark) {
    const auto prepend = static_cast<Prepend>(operation.a);
    std::string& changed = scratch_->pieces[index];
    changed.clear();
    const bool wanted = prepend == Prepend::Always || (prepend == Prepend::First && at_start);
    if (wanted && text.data()[0] != ' ' && !starts_with(text, mark)) {
      changed.append(mark.data(), mark.size());
    }
    for (size_t i = 0; i < text.size();) {
      const size_t space = find_text(text, i, " ");
      changed.append(text.data() + i, space - i);
      if (space < text.size()) changed.append(mark.data(), mark.size());
      i = space + 1;
    }
    const StringView piece(changed.data(), changed.size());
    if (operation.b == 0) return split(index + 1, piece, at_start);
    split_text(index, piece, at_start, Behavior::MergedWithNext, mark);
  }

  void add_space(size_t index, StringView text, bool at_start) {
    if (text.data()[0] == ' ') return split(index + 1, text, at_start);
    std::string& changed = scratch_->pieces[index];
    changed.assign(1, ' ');
    changed.append(text.data(), text.size());
    split(index + 1, {changed.data(), changed.size()}, at_start);
  }

  const Table& table_;
  Scratch* scratch_;
  WordSink* sink_;
};

}  // namespace

void split_words(const Table& table, StringView text, bool at_start, Scratch* scratch,
                 WordSink* sink) {
  Splitter(table, scratch, sink).split(0, text, at_start);
}

}  // namespace rushlight::llm
