#include "rushlight/module/debug/debug_lines.h"

#include <cstring>

namespace rushlight {
namespace {

constexpr uint8_t kMagic[] = {'R', 'L', 'D', 'M', 2};  // the last byte is the version
constexpr size_t kHeader = sizeof(kMagic) + 1;         // and a byte that says what is omitted
constexpr size_t kMaxDigits = 15;                      // of an id that is a number
constexpr int kMaxCopies = 16;                         // maximum depth of nested copies

// Parses an id that is a number; false if it is other text.
bool is_number(StringView id, uint64_t* number) {
  if (id.size() == 0 || id.size() > kMaxDigits || (id.size() > 1 && id.data()[0] == '0')) {
    return false;
  }
  *number = 0;
  for (size_t i = 0; i < id.size(); ++i) {
    const char c = id.data()[i];
    if (c < '0' || c > '9') return false;
    *number = *number * 10 + static_cast<uint64_t>(c - '0');
  }
  return true;
}

// The number at `index` of a sequence, 0 after its end. A sequence consists of runs of equal
// numbers, runs of numbers that increase by 1, and copies of earlier parts, which may contain
// copies.
uint64_t number_at(VarintReader sequence, uint64_t index) {
  enum Kind : uint64_t { kSame, kRising, kCopy };
  for (int copies = 0; copies <= kMaxCopies; ++copies) {
    VarintReader entries = sequence;
    uint64_t start = 0, last = 0, count = 0, value = 0, kind = kSame;
    for (; entries.more(); start += count) {
      const uint64_t head = entries.number();
      count = head >> 2;
      kind = head & 3;
      value = kind == kCopy ? entries.number() : last + entries.difference();
      if (entries.failed() || kind > kCopy || count > UINT64_MAX - start) return 0;
      if (index < start + count) break;
      if (kind != kCopy) last = kind == kRising && count > 0 ? value + count - 1 : value;
    }
    if (index >= start + count) return 0;
    if (kind == kSame) return value;
    if (kind == kRising) return value + (index - start);
    if (value == 0 || value > start) return 0;
    index = start - value + (index - start) % value;
  }
  return 0;
}

}  // namespace

void VarintReader::fail() {
  failed_ = true;
  at_ = end_;
}

uint64_t VarintReader::number() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 63 && at_ < end_; shift += 7) {
    const uint8_t byte = *at_++;
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  fail();
  return 0;
}

uint64_t VarintReader::difference() {
  const uint64_t stored = number();
  return (stored >> 1) ^ (0 - (stored & 1));
}

Span<const uint8_t> VarintReader::bytes(uint64_t size) {
  if (size > static_cast<uint64_t>(end_ - at_)) {
    fail();
    return {};
  }
  const uint8_t* start = at_;
  at_ += size;
  return {start, static_cast<size_t>(size)};
}

VarintReader VarintReader::sized() {
  const Span<const uint8_t> block = bytes(number());
  return {block.data(), block.data() + block.size()};
}

DebugLines::DebugLines(Span<const uint8_t> map) {
  if (map.size() < kHeader || std::memcmp(map.data(), kMagic, sizeof(kMagic)) != 0) return;
  present_ = true;
  VarintReader sections(map.data() + kHeader, map.data() + map.size());
  strings_ = sections.sized();
  lines_ = sections.sized();
  sets_ = sections.sized();
  methods_ = sections.sized();
}

size_t DebugLines::text(uint64_t number, char* buffer, size_t size) const {
  if (size == 0) return 0;
  VarintReader strings = strings_;
  uint64_t length = 0;  // length of the whole text; the buffer has its beginning
  const uint64_t room = size - 1;
  for (; number > 0 && strings.more(); --number) {
    const uint64_t shared = strings.number();
    const Span<const uint8_t> rest = strings.bytes(strings.number());
    if (strings.failed() || shared > length) break;
    if (shared < room) {
      const uint64_t left = room - shared;
      const size_t n = rest.size() < left ? rest.size() : static_cast<size_t>(left);
      if (n > 0) std::memcpy(buffer + shared, rest.data(), n);
    }
    length = shared + rest.size();
  }
  size_t kept = number > 0 ? 0 : static_cast<size_t>(length < room ? length : room);
  if (kept < length) kept = whole_characters(buffer, kept);
  buffer[kept] = '\0';
  return kept;
}

uint64_t DebugLines::find(StringView text) const {
  VarintReader strings = strings_;
  uint64_t length = 0;
  size_t same = 0;  // number of bytes that the string shares with the one before
  for (uint64_t number = 1; strings.more(); ++number) {
    const uint64_t shared = strings.number();
    const Span<const uint8_t> rest = strings.bytes(strings.number());
    if (strings.failed() || shared > length) return 0;
    length = shared + rest.size();
    if (shared <= same) {
      same = static_cast<size_t>(shared);
      for (size_t i = 0; i < rest.size() && same < text.size(); ++i, ++same) {
        if (static_cast<uint8_t>(text.data()[same]) != rest[i]) break;
      }
    }
    if (same == text.size() && length == same) return number;
  }
  return 0;
}

uint64_t DebugLines::line(uint64_t number, Line* out) const {
  VarintReader blocks = lines_;
  uint64_t seen = 0;
  while (blocks.more()) {
    Line line;
    line.file = blocks.number();
    line.function = blocks.number();
    const uint64_t count = blocks.number();
    for (uint64_t i = 0; i < count && blocks.more(); ++i) {
      line.number += blocks.difference();
      line.text = blocks.number();
      if (blocks.failed()) return seen;
      if (seen++ == number) *out = line;
    }
  }
  return seen;
}

size_t DebugLines::lines(uint64_t reference, Line* lines, size_t most) const {
  if (reference == 0 || most == 0) return 0;
  const uint64_t there = line(reference - 1, lines);
  if (reference <= there) return 1;
  VarintReader sets = sets_;
  for (uint64_t set = there + 1; sets.more(); ++set) {
    const uint64_t count = sets.number();
    size_t n = 0;
    uint64_t number = 0;
    for (uint64_t i = 0; i < count && sets.more(); ++i) {
      number += sets.difference();
      const bool is_there = number > 0 && number <= there;
      if (set == reference && n < most && is_there) line(number - 1, &lines[n++]);
    }
    if (set == reference) return sets.failed() ? 0 : n;
  }
  return 0;
}

VarintReader DebugLines::method(StringView name) const {
  const uint64_t wanted = find(name);
  VarintReader methods = methods_;
  while (wanted > 0 && methods.more()) {
    const uint64_t number = methods.number();
    const VarintReader body = methods.sized();
    if (number == wanted && !methods.failed()) return body;
  }
  return {};
}

uint64_t DebugLines::instruction(StringView name, size_t index) const {
  VarintReader body = method(name);
  return number_at(body.sized(), index);
}

uint64_t DebugLines::place(StringView name, size_t delegate, StringView id) const {
  VarintReader body = method(name);
  body.sized();  // skip the instructions
  for (; delegate > 0 && body.more(); --delegate) body.sized();
  if (delegate > 0 || !body.more()) return 0;
  VarintReader places = body.sized();
  VarintReader ids = places.sized();
  const uint64_t text = find(id);
  uint64_t number = 0;
  const bool counts = is_number(id, &number);
  uint64_t index = 0, next = 0;
  while (ids.more()) {
    const uint64_t head = ids.number();
    const uint64_t count = head >> 1;  // or a text
    if (head & 1) {
      if (text > 0 && count == text) return number_at(places, index);
      ++index;
      continue;
    }
    next += ids.number();
    if (ids.failed()) return 0;
    if (counts && number >= next && number - next < count) {
      return number_at(places, index + (number - next));
    }
    next += count;
    index += count;
  }
  return 0;
}

size_t whole_characters(const char* text, size_t size) {
  size_t start = size;  // start of the last character
  while (start > 0 && (static_cast<uint8_t>(text[start - 1]) & 0xc0) == 0x80) --start;
  if (start == 0) return size;
  const uint8_t first = static_cast<uint8_t>(text[--start]);
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  return size - start < length ? start : size;
}

}  // namespace rushlight
