#include "rushlight/llm/tokenizer/normalizer/normalizer.h"

#include "rushlight/llm/tokenizer/normalizer/charsmap.h"
#include "rushlight/llm/tokenizer/normalizer/compose.h"
#include "rushlight/llm/tokenizer/normalizer/sentence_piece.h"
#include "rushlight/llm/tokenizer/unicode/unicode.h"

namespace rushlight::llm {
namespace {

StringView rest(StringView text, size_t i) { return {text.data() + i, text.size() - i}; }

void append(StringView text, std::string* out) { out->append(text.data(), text.size()); }

void append_code(uint32_t code, std::string* out) {
  char bytes[4];
  out->append(bytes, write_utf8(code, bytes));
}

// Calls `change(code, character)` for each character.
template <class Change>
void for_each(StringView text, const Change& change) {
  for (size_t i = 0; i < text.size();) {
    const Point point = read_point(text.data() + i, text.size() - i);
    change(point.code, StringView(text.data() + i, point.bytes));
    i += point.bytes;
  }
}

void replace(StringView text, StringView old, StringView replacement, std::string* out) {
  size_t copied = 0;
  for (size_t i = 0; text.size() - i >= old.size();) {
    const void* next = std::memchr(text.data() + i, old.data()[0], text.size() - i);
    if (next == nullptr) break;
    i = static_cast<size_t>(static_cast<const char*>(next) - text.data());
    if (text.size() - i < old.size()) break;
    if (std::memcmp(text.data() + i, old.data(), old.size()) != 0) {
      ++i;
      continue;
    }
    out->append(text.data() + copied, i - copied);
    append(replacement, out);
    copied = i += old.size();
  }
  append(rest(text, copied), out);
}

// Runs of more than one `code`.
void replace_runs(StringView text, uint32_t code, StringView replacement, std::string* out) {
  char character[4];
  const size_t bytes = write_utf8(code, character);
  const auto stands_at = [&](size_t i) {
    return text.size() - i >= bytes && std::memcmp(text.data() + i, character, bytes) == 0;
  };
  size_t copied = 0;
  for (size_t i = 0; i < text.size();) {
    const void* next = std::memchr(text.data() + i, character[0], text.size() - i);
    if (next == nullptr) break;
    const auto begin = static_cast<size_t>(static_cast<const char*>(next) - text.data());
    size_t end = begin;
    while (stands_at(end)) end += bytes;
    if (end - begin > bytes) {
      out->append(text.data() + copied, begin - copied);
      append(replacement, out);
      copied = end;
    }
    i = end > begin ? end : begin + 1;
  }
  append(rest(text, copied), out);
}

void strip(StringView text, bool left, bool right, std::string* out) {
  size_t begin = 0, end = text.size();
  const auto character = [&](size_t i) { return read_point(text.data() + i, end - i); };
  while (left && begin < end) {
    const Point point = character(begin);
    if ((classes_of(point.code) & kSpace) == 0) break;
    begin += point.bytes;
  }
  while (right && begin < end) {
    size_t last = end - 1;
    while (last > begin && (static_cast<uint8_t>(text.data()[last]) & 0xC0) == 0x80) --last;
    if ((classes_of(character(last).code) & kSpace) == 0) break;
    end = last;
  }
  out->append(text.data() + begin, end - begin);
}

void lowercase(StringView text, std::string* out) {
  for_each(text, [&](uint32_t code, StringView character) {
    if (code < 0x80) {
      out->push_back(static_cast<char>(code >= 'A' && code <= 'Z' ? code + 32 : code));
      return;
    }
    const uint16_t index = look_up(kLoweredPage, kLowered, code);
    if (index == 0) return append(character, out);
    for (uint32_t i = kLoweredStarts[index]; i < kLoweredStarts[index + 1]; ++i) {
      append_code(kLoweredCodes[i], out);
    }
  });
}

void drop(StringView text, uint16_t classes, std::string* out) {
  for_each(text, [&](uint32_t code, StringView character) {
    if ((classes_of(code) & classes) == 0) append(character, out);
  });
}

void bert_clean(StringView text, std::string* out) {
  for_each(text, [&](uint32_t code, StringView character) {
    const uint16_t classes = classes_of(code);
    if ((classes & kControl) != 0) return;
    if ((classes & kSpace) != 0) return out->push_back(' ');
    append(character, out);
  });
}

bool is_chinese(uint32_t code) {
  constexpr uint32_t kRanges[][2] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                     {0x20000, 0x2A6DF}, {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF},
                                     {0x2F800, 0x2FA1F}};
  for (const auto& range : kRanges) {
    if (code >= range[0] && code <= range[1]) return true;
  }
  return false;
}

void bert_chinese(StringView text, std::string* out) {
  for_each(text, [&](uint32_t code, StringView character) {
    const bool spaced = is_chinese(code);
    if (spaced) out->push_back(' ');
    append(character, out);
    if (spaced) out->push_back(' ');
  });
}

size_t end_of_grapheme(StringView text, size_t begin) {
  const auto is = [&](const Point& point, uint16_t classes) {
    return (classes_of(point.code) & classes) != 0;
  };
  const auto at = [&](size_t i) { return read_point(text.data() + i, text.size() - i); };
  Point last = at(begin);
  size_t end = begin + last.bytes;
  if (is(last, kBreaks)) {
    const bool line = last.code == '\r' && end < text.size() && text.data()[end] == '\n';
    return line ? end + 1 : end;
  }
  for (; end < text.size(); end += last.bytes) {
    const Point next = at(end);
    if (!is(next, kJoins) && (!is(last, kPrepends) || is(next, kBreaks))) break;
    last = next;
  }
  return end;
}

// Graphemes of less than 6 bytes are looked up whole, and then a text that only begins them is
// replaced as well, as tokenizers does.
void charsmap(const Table& table, StringView text, std::string* out) {
  constexpr size_t kLongest = 5;
  const auto is_grapheme_longer = [](uint32_t code, uint8_t, uint32_t following) {
    return (classes_of(code) & kPrepends) != 0 || (classes_of(following) & kJoins) != 0;
  };
  for (size_t i = 0; i < text.size();) {
    const size_t plain = end_of_plain(table, text, i, is_grapheme_longer);
    if (plain > i) {
      out->append(text.data() + i, plain - i);
      i = plain;
      continue;
    }
    const size_t end = end_of_grapheme(text, i);
    if (end - i <= kLongest) {
      const Replacement whole = find_replacement(table, {text.data() + i, end - i}, false);
      if (whole.replaced != 0) {
        append(whole.text, out);
        i = end;
        continue;
      }
    }
    for_each({text.data() + i, end - i}, [&](uint32_t, StringView character) {
      const Replacement one = find_replacement(table, character, false);
      append(one.replaced != 0 ? one.text : character, out);
    });
    i = end;
  }
}

void nmt(StringView text, std::string* out) {
  const auto is_dropped = [](uint32_t code) {
    return (code >= 0x01 && code <= 0x08) || code == 0x0B || (code >= 0x0E && code <= 0x1F) ||
           code == 0x7F || code == 0x8F || code == 0x9F;
  };
  const auto is_space = [](uint32_t code) {
    return code == 0x09 || code == 0x0A || code == 0x0C || code == 0x0D || code == 0x1680 ||
           (code >= 0x200B && code <= 0x200F) || code == 0x2028 || code == 0x2029 ||
           code == 0x2581 || code == 0xFEFF || code == 0xFFFD;
  };
  for_each(text, [&](uint32_t code, StringView character) {
    if (is_dropped(code)) return;
    append(is_space(code) ? StringView(" ") : character, out);
  });
}

void apply(const Table& table, const Operation& operation, StringView text, Scratch* scratch,
           std::string* out) {
  const StringView wanted = table.text(operation.text, operation.text_size);
  const StringView other = table.text(operation.other, operation.other_size);
  switch (static_cast<NormalizeKind>(operation.kind)) {
    case kReplace:
      return replace(text, wanted, other, out);
    case kReplaceRuns:
      return replace_runs(text, operation.a, other, out);
    case kPrepend:
      if (!text.empty()) append(wanted, out);
      return append(text, out);
    case kStrip:
      return strip(text, operation.a != 0, operation.b != 0, out);
    case kLowercase:
      return lowercase(text, out);
    case kStripAccents:
      return drop(text, kAccent, out);
    case kDecompose:
      return decompose(text, operation.a != 0, &scratch->codes, out);
    case kCompose:
      return compose(text, operation.a != 0, &scratch->codes, out);
    case kBertClean:
      return bert_clean(text, out);
    case kBertChinese:
      return bert_chinese(text, out);
    case kBertAccents: {
      std::string decomposed;
      decompose(text, false, &scratch->codes, &decomposed);
      return drop({decomposed.data(), decomposed.size()}, kNonspacing, out);
    }
    case kCharsmap:
      return charsmap(table, text, out);
    case kSentencePiece:
      return sentence_piece(table, operation.a, text, out);
    default:
      return nmt(text, out);
  }
}

}  // namespace

StringView normalize(const Table& table, StringView text, Scratch* scratch) {
  int turn = 0;
  for (const Operation& operation : table.normalizer) {
    std::string& out = scratch->normalized[turn];
    out.clear();
    apply(table, operation, text, scratch, &out);
    text = {out.data(), out.size()};
    turn = 1 - turn;
  }
  return text;
}

}  // namespace rushlight::llm
