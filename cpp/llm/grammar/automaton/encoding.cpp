#include "rushlight/llm/grammar/automaton/encoding.h"

#include <algorithm>
#include <utility>

#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm::grammar {
namespace {

using Sequences = std::vector<ByteSequence>;

// Calls `emit` with parts of the range in each of which all digits of `bits` bits are either the
// same at both ends, or go through all values.
template <typename Emit>
void split_digits(CodeRange range, uint32_t bits, const Emit& emit) {
  for (uint32_t i = 1; i < 4; ++i) {
    const uint32_t mask = (1u << (bits * i)) - 1;
    if ((range.low & ~mask) == (range.high & ~mask)) continue;
    if ((range.low & mask) != 0) {
      split_digits({range.low, range.low | mask}, bits, emit);
      return split_digits({(range.low | mask) + 1, range.high}, bits, emit);
    }
    if ((range.high & mask) != mask) {
      split_digits({range.low, (range.high & ~mask) - 1}, bits, emit);
      return split_digits({range.high & ~mask, range.high}, bits, emit);
    }
  }
  emit(range);
}

// Calls `emit` with the part of the range within low to high, if there is one.
template <typename Emit>
void within(CodeRange range, uint32_t low, uint32_t high, const Emit& emit) {
  const CodeRange part = {std::max(range.low, low), std::min(range.high, high)};
  if (part.low <= part.high) emit(part);
}

void append_utf8(CodeRange range, Sequences* out) {
  const uint32_t lasts[] = {0x7F, 0x7FF, 0xFFFF, kLastCode};
  uint32_t low = 0;
  for (const uint32_t last : lasts) {
    within(range, low, last, [out](CodeRange same_length) {
      split_digits(same_length, 6, [out](CodeRange part) {
        char first[4], second[4];
        const size_t bytes = write_utf8(part.low, first);
        write_utf8(part.high, second);
        ByteSequence sequence;
        for (size_t i = 0; i < bytes; ++i) {
          sequence.push_back(
              {static_cast<uint8_t>(first[i]), static_cast<uint8_t>(second[i]), false});
        }
        out->push_back(std::move(sequence));
      });
    });
    low = last + 1;
  }
}

ByteSequence literal(const char* text) {
  ByteSequence sequence;
  for (; *text != '\0'; ++text) {
    const auto byte = static_cast<uint8_t>(*text);
    sequence.push_back({byte, byte, false});
  }
  return sequence;
}

// \uHHHH for codes up to FFFF.
void append_hex(CodeRange range, bool any_case, Sequences* out) {
  split_digits(range, 4, [any_case, out](CodeRange part) {
    ByteSequence sequence = literal("\\u");
    for (uint32_t shift = 16; shift > 0;) {
      shift -= 4;
      const auto low = static_cast<uint8_t>(part.low >> shift & 15);
      const auto high = static_cast<uint8_t>(part.high >> shift & 15);
      if (any_case) {
        sequence.push_back({low, high, true});
      } else {  // only for single codes
        const auto digit = static_cast<uint8_t>("0123456789abcdef"[low]);
        sequence.push_back({digit, digit, false});
      }
    }
    out->push_back(std::move(sequence));
  });
}

// \uHHHH\uHHHH for codes from 10000: pairs of surrogates.
void append_hex_pairs(CodeRange range, Sequences* out) {
  const uint32_t low = range.low - 0x10000, high = range.high - 0x10000;
  const auto pairs = [out](CodeRange firsts, CodeRange seconds) {
    Sequences heads, tails;
    append_hex({0xD800 + firsts.low, 0xD800 + firsts.high}, true, &heads);
    append_hex({0xDC00 + seconds.low, 0xDC00 + seconds.high}, true, &tails);
    for (const ByteSequence& head : heads) {
      for (const ByteSequence& tail : tails) {
        out->push_back(head);
        out->back().insert(out->back().end(), tail.begin(), tail.end());
      }
    }
  };
  uint32_t first = low >> 10, last = high >> 10;
  if (first == last) return pairs({first, first}, {low & 0x3FF, high & 0x3FF});
  if ((low & 0x3FF) != 0) pairs({first, first}, {low & 0x3FF, 0x3FF}), ++first;
  if ((high & 0x3FF) != 0x3FF) pairs({last, last}, {0, high & 0x3FF}), --last;
  if (first <= last) pairs({first, last}, {0, 0x3FF});
}

// The letter of a short escape, or 0.
char short_escape(uint32_t code) {
  switch (code) {
    case '"':
    case '\\':
      return static_cast<char>(code);
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return '\0';
  }
}

void append_json(CodeRange range, bool free, Sequences* out) {
  within(range, 0x20, '"' - 1, [out](CodeRange part) { append_utf8(part, out); });
  within(range, '"' + 1, '\\' - 1, [out](CodeRange part) { append_utf8(part, out); });
  within(range, '\\' + 1, kLastCode, [out](CodeRange part) { append_utf8(part, out); });
  within(range, 0, '\\', [free, out](CodeRange part) {
    for (uint32_t code = part.low; code <= part.high; ++code) {
      const char escape[] = {'\\', short_escape(code), '\0'};
      if (escape[1] != '\0') out->push_back(literal(escape));
      if (escape[1] == '\0' && code < 0x20 && !free) append_hex({code, code}, false, out);
    }
  });
  if (!free) return;
  within(range, '/', '/', [out](CodeRange) { out->push_back(literal("\\/")); });
  within(range, 0, 0xFFFF, [out](CodeRange part) { append_hex(part, true, out); });
  within(range, 0x10000, kLastCode, [out](CodeRange part) { append_hex_pairs(part, out); });
}

}  // namespace

void append_sequences(CodeRange range, Encoding encoding, std::vector<ByteSequence>* out) {
  for (const CodeRange& part : normalized({range})) {
    if (encoding == Encoding::Plain) {
      append_utf8(part, out);
    } else {
      append_json(part, encoding == Encoding::JsonFree, out);
    }
  }
}

}  // namespace rushlight::llm::grammar
