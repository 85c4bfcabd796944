// UTF-8 as tokenizers, templates and grammars read and write it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rushlight::llm {

constexpr uint32_t kReplacement = 0xFFFD;  // the character for bytes that are not valid

struct Character {
  uint32_t code = kReplacement;
  uint32_t bytes = 1;  // that it takes
  bool valid = false;
  bool cut = false;  // not valid only because the text ends within it
};

// The character at the start of `text`, which has `size` >= 1 bytes. Bytes that are not valid are
// taken in maximal subparts (Unicode 16.0, section 3.9, U+FFFD Substitution of Maximal Subparts),
// each of which is one kReplacement, as Python's decode(errors="replace") gives.
Character read_utf8(const char* text, size_t size);

// Writes the character to `out`, which has room for 4 bytes; returns how many it took. A surrogate
// or a code beyond U+10FFFF is written as kReplacement.
size_t write_utf8(uint32_t code, char* out);

}  // namespace rushlight::llm
