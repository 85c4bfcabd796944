#include "rushlight/llm/tokenizer/normalizer/compose.h"

#include <algorithm>

#include "rushlight/llm/tokenizer/unicode/unicode.h"

namespace rushlight::llm {
namespace {

using Codes = std::vector<uint32_t>;

// Hangul syllables are computed (Unicode, section 3.12).
constexpr uint32_t kSyllable = 0xAC00, kLead = 0x1100, kVowel = 0x1161, kTrail = 0x11A7;
constexpr uint32_t kVowels = 21, kTrails = 28, kSyllables = 11172, kLeads = 19;

void append_decomposed(uint32_t code, bool compatible, Codes* codes) {
  const uint32_t syllable = code - kSyllable;
  if (code >= kSyllable && syllable < kSyllables) {
    codes->push_back(kLead + syllable / (kVowels * kTrails));
    codes->push_back(kVowel + syllable / kTrails % kVowels);
    if (syllable % kTrails != 0) codes->push_back(kTrail + syllable % kTrails);
    return;
  }
  const uint16_t index = compatible ? look_up(kCompatiblePage, kCompatible, code)
                                    : look_up(kCanonicalPage, kCanonical, code);
  if (index == 0) {
    codes->push_back(code);
    return;
  }
  const uint16_t* starts = compatible ? kCompatibleStarts : kCanonicalStarts;
  const uint32_t* texts = compatible ? kCompatibleCodes : kCanonicalCodes;
  codes->insert(codes->end(), texts + starts[index], texts + starts[index + 1]);
}

// Marks after a character in the order of their classes.
void order_marks(Codes* codes) {
  for (size_t i = 0; i < codes->size();) {
    size_t end = i;
    while (end < codes->size() && combining_class((*codes)[end]) != 0) ++end;
    if (end - i > 1) {
      std::stable_sort(
          codes->begin() + static_cast<ptrdiff_t>(i), codes->begin() + static_cast<ptrdiff_t>(end),
          [](uint32_t a, uint32_t b) { return combining_class(a) < combining_class(b); });
    }
    i = end + 1;
  }
}

// What two characters compose to, or 0.
uint32_t composed(uint32_t first, uint32_t second) {
  if (first - kLead < kLeads && second - kVowel < kVowels) {
    return kSyllable + ((first - kLead) * kVowels + (second - kVowel)) * kTrails;
  }
  if (first - kSyllable < kSyllables && (first - kSyllable) % kTrails == 0 && second > kTrail &&
      second < kTrail + kTrails) {
    return first + (second - kTrail);
  }
  uint32_t low = 0, high = kCompositions;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    const uint32_t* triple = kComposition + size_t{3} * middle;
    if (triple[0] == first && triple[1] == second) return triple[2];
    const bool is_less = triple[0] != first ? triple[0] < first : triple[1] < second;
    (is_less ? low : high) = is_less ? middle + 1 : middle;
  }
  return 0;
}

void compose_codes(Codes* codes) {
  constexpr size_t kNo = ~size_t{0};
  size_t starter = kNo, written = 0;
  int last_class = -1;  // of what stands between the starter and here; -1: nothing
  for (const uint32_t code : *codes) {
    const int own_class = combining_class(code);
    if (starter != kNo && last_class < own_class) {
      const uint32_t both = composed((*codes)[starter], code);
      if (both != 0) {
        (*codes)[starter] = both;
        continue;
      }
    }
    if (own_class == 0) {
      starter = written;
      last_class = -1;
    } else {
      last_class = own_class;
    }
    (*codes)[written++] = code;
  }
  codes->resize(written);
}

void append_codes(const Codes& codes, std::string* out) {
  char bytes[4];
  for (const uint32_t code : codes) out->append(bytes, write_utf8(code, bytes));
}

void append_form(StringView text, bool compatible, bool composes, Codes* codes, std::string* out) {
  codes->clear();
  for (size_t i = 0; i < text.size();) {
    const Point point = read_point(text.data() + i, text.size() - i);
    append_decomposed(point.code, compatible, codes);
    i += point.bytes;
  }
  order_marks(codes);
  if (composes) compose_codes(codes);
  append_codes(*codes, out);
}

}  // namespace

// ASCII does not change, and marks do not move across it.
void decompose(StringView text, bool compatible, Codes* codes, std::string* out) {
  const auto is_ascii = [&](size_t i) { return static_cast<uint8_t>(text.data()[i]) < 0x80; };
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    while (i < text.size() && is_ascii(i)) ++i;
    out->append(text.data() + begin, i - begin);
    const size_t other = i;
    while (i < text.size() && !is_ascii(i)) ++i;
    if (i > other) append_form({text.data() + other, i - other}, compatible, false, codes, out);
  }
}

// Only stretches around characters that may change are composed: from the character before them to
// the next that does not change.
void compose(StringView text, bool compatible, Codes* codes, std::string* out) {
  const uint16_t changing = compatible ? kMayComposeCompatible : kMayCompose;
  size_t copied = 0, before = 0;
  for (size_t i = 0; i < text.size();) {
    const auto at = [&](size_t where) {
      return read_point(text.data() + where, text.size() - where);
    };
    Point point = at(i);
    if ((classes_of(point.code) & changing) == 0) {
      before = i;
      i += point.bytes;
      continue;
    }
    while (i < text.size() && (classes_of((point = at(i)).code) & changing) != 0) i += point.bytes;
    out->append(text.data() + copied, before - copied);
    append_form({text.data() + before, i - before}, compatible, true, codes, out);
    copied = before = i;
  }
  out->append(text.data() + copied, text.size() - copied);
}

}  // namespace rushlight::llm
