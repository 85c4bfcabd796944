// Writes the half of a debug map that is read in place, section by section.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rushlight::test {

using Bytes = std::vector<uint8_t>;

inline void number(Bytes& out, uint64_t value) {
  for (; value > 0x7f; value >>= 7) out.push_back(static_cast<uint8_t>(value | 0x80));
  out.push_back(static_cast<uint8_t>(value));
}

inline void difference(Bytes& out, int64_t value) {
  const uint64_t doubled = static_cast<uint64_t>(value) << 1;
  number(out, value < 0 ? ~doubled : doubled);
}

inline void sized(Bytes& out, const Bytes& bytes) {
  number(out, bytes.size());
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// An entry of a sequence: `count` numbers that increase by `increment`. The first one is greater
// than the previous number by `above`.
inline void entry(Bytes& out, uint64_t count, uint64_t increment, int64_t above) {
  number(out, count << 2 | increment);
  difference(out, above);
}

// Repeats `count` numbers that are `back` numbers before.
inline void copy(Bytes& out, uint64_t count, uint64_t back) {
  number(out, count << 2 | 2);
  number(out, back);
}

struct DebugSections {
  Bytes strings, lines, sets, methods;

  // The next string: the number of bytes that it shares with the previous one, and the rest.
  void string(uint64_t shared, const std::string& rest) {
    number(strings, shared);
    sized(strings, Bytes(rest.begin(), rest.end()));
  }
  Bytes bytes() const {
    Bytes out = {'R', 'L', 'D', 'M', 2, 0};
    for (const Bytes* section : {&strings, &lines, &sets, &methods}) sized(out, *section);
    return out;
  }
};

// Strings 1 to 7; lines a.py:3, b.py:12, b.py:15; sets {1, 3} and {3, 2, 1, 3}. The method
// "forward" has six instructions, which refer to 1, 2, 3, 3, 3 and 0, and two delegates. The first
// has no places. The second has places 0 to 2 (lines 1 to 3), 7 (the first set), "mul" (the second
// set), "12" (line 2), and 20 to 25, which are copies: lines 2 and 3, then line 3 four more times.
inline Bytes debug_map() {
  DebugSections map;
  map.string(0, "12");            // 1
  map.string(0, "a.py");          // 2
  map.string(0, "b.py");          // 3
  map.string(0, "f");             // 4
  map.string(1, "orward");        // 5
  map.string(0, "mul");           // 6
  map.string(0, "\xc3\xa9 * y");  // 7
  for (const uint64_t value : {2, 5, 1}) number(map.lines, value);
  difference(map.lines, 3);
  number(map.lines, 0);
  for (const uint64_t value : {3, 4, 2}) number(map.lines, value);
  difference(map.lines, 12);
  number(map.lines, 7);
  difference(map.lines, 3);
  number(map.lines, 0);
  number(map.sets, 2);
  for (const int64_t value : {1, 2}) difference(map.sets, value);
  number(map.sets, 4);
  for (const int64_t value : {3, -1, -1, 2}) difference(map.sets, value);
  Bytes instructions, references, places, body;
  entry(instructions, 3, 1, 1);
  entry(instructions, 2, 0, 0);
  entry(instructions, 1, 0, -3);
  Bytes ids;
  for (const uint64_t value : {3 << 1, 0}) number(ids, value);   // 0 to 2
  for (const uint64_t value : {1 << 1, 4}) number(ids, value);   // 7
  number(ids, 6 << 1 | 1);                                       // mul
  number(ids, 1 << 1 | 1);                                       // 12, after a greater one
  for (const uint64_t value : {6 << 1, 12}) number(ids, value);  // 20 to 25
  entry(references, 5, 1, 1);
  entry(references, 1, 0, -3);
  copy(references, 2, 5);
  copy(references, 4, 1);
  sized(places, ids);
  places.insert(places.end(), references.begin(), references.end());
  sized(body, instructions);
  sized(body, {});
  sized(body, places);
  number(map.methods, 5);
  sized(map.methods, body);
  return map.bytes();
}

}  // namespace rushlight::test
