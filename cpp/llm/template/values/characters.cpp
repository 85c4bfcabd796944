#include "rushlight/llm/template/values/characters.h"

#include <algorithm>
#include <vector>

#include "rushlight/llm/template/values/character_tables.h"
#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm {

uint8_t character_flags(uint32_t code) {
  const uint32_t* end = kCharacterRuns.end();
  const uint32_t* after = std::upper_bound(kCharacterRuns.begin(), end, code << 8 | 0xFF);
  return static_cast<uint8_t>(after[-1]);
}

bool is_space(uint32_t code) {
  if (code < 0x80) return (code >= 9 && code <= 13) || (code >= 0x1C && code <= 0x20);
  return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
         code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

uint32_t Characters::next() {
  const Character character = read_utf8(text_.data() + at_, text_.size() - at_);
  at_ += character.bytes;
  return character.code;
}

size_t count_characters(StringView text) {
  return static_cast<size_t>(std::count_if(text.data(), text.data() + text.size(),
                                           [](char c) { return (c & 0xC0) != 0x80; }));
}

size_t byte_of_character(StringView text, size_t index) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if ((text.data()[at] & 0xC0) == 0x80) continue;
    if (index == 0) break;
    --index;
  }
  return at;
}

size_t find_bytes(StringView text, StringView part, size_t from) {
  constexpr size_t kShort = 32;  // for which comparing at each place is linear, too
  const char* begin = text.data() + std::min(from, text.size());
  const char* end = text.data() + text.size();
  if (part.size() <= kShort) {
    const char* place = std::search(begin, end, part.data(), part.data() + part.size());
    if (place == end && !part.empty()) return std::string::npos;
    return from <= text.size() ? static_cast<size_t>(place - text.data()) : std::string::npos;
  }
  // Knuth, Morris and Pratt: `borders` has how much of the part still matches after a mismatch.
  std::vector<size_t> borders(part.size(), 0);
  for (size_t i = 1, match = 0; i < part.size(); ++i) {
    while (match > 0 && part.data()[i] != part.data()[match]) match = borders[match - 1];
    if (part.data()[i] == part.data()[match]) ++match;
    borders[i] = match;
  }
  size_t match = 0;
  for (const char* c = begin; c != end; ++c) {
    while (match > 0 && *c != part.data()[match]) match = borders[match - 1];
    if (*c == part.data()[match]) ++match;
    if (match == part.size()) return static_cast<size_t>(c - text.data()) + 1 - match;
  }
  return std::string::npos;
}

void append_case(uint32_t code, Case to, std::string* out) {
  const CaseTable& table = to == Case::Upper   ? kUpperTable
                           : to == Case::Lower ? kLowerTable
                                               : kTitleTable;
  char bytes[4];
  for (const CaseExpansion& expansion : table.expansions) {
    if (expansion.code != code) continue;
    for (uint32_t one : expansion.to) {
      if (one != 0) out->append(bytes, write_utf8(one, bytes));
    }
    return;
  }
  const CaseRun* run =
      std::lower_bound(table.runs.begin(), table.runs.end(), code,
                       [](const CaseRun& r, uint32_t wanted) { return r.last < wanted; });
  if (run != table.runs.end() && run->first <= code && (code - run->first) % run->stride == 0) {
    code = static_cast<uint32_t>(static_cast<int32_t>(code) + run->difference);
  }
  out->append(bytes, write_utf8(code, bytes));
}

std::string change_case(StringView text, Case to) {
  std::string out;
  out.reserve(text.size());
  for (Characters characters(text); !characters.at_end();) {
    const uint32_t code = characters.next();
    if (code >= 0x80) {
      append_case(code, to, &out);
      continue;
    }
    const bool lower = code >= 'a' && code <= 'z', upper = code >= 'A' && code <= 'Z';
    const bool changes = to == Case::Lower ? upper : lower;
    out.push_back(static_cast<char>(changes ? code ^ 0x20 : code));
  }
  return out;
}

namespace {

bool is_stripped(uint32_t code, const StringView* characters) {
  if (characters == nullptr) return is_space(code);
  for (Characters among(*characters); !among.at_end();) {
    if (among.next() == code) return true;
  }
  return false;
}

}  // namespace

TextRange stripped(StringView text, bool left, bool right, const StringView* characters) {
  TextRange range = {0, text.size()};
  while (left && range.begin < range.end) {
    const Character c = read_utf8(text.data() + range.begin, range.end - range.begin);
    if (!is_stripped(c.code, characters)) break;
    range.begin += c.bytes;
  }
  while (right && range.begin < range.end) {
    size_t start = range.end - 1;
    while (start > range.begin && (text.data()[start] & 0xC0) == 0x80) --start;
    if (!is_stripped(read_utf8(text.data() + start, range.end - start).code, characters)) break;
    range.end = start;
  }
  return range;
}

}  // namespace rushlight::llm
