#include "rushlight/llm/tokenizer/unicode/repair.h"

#include <cstdint>

#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm {
namespace {

// The bytes of the character that begins `text`, or 0 if it is not valid: read_utf8's answer,
// faster.
size_t valid_size(const char* text, size_t size) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xE0) return first >= 0xC2 && size >= 2 && follows(1) ? 2 : 0;
  if (first < 0xF0) {
    if (size < 3 || !follows(1) || !follows(2)) return 0;
    const uint8_t low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
    return byte(1) >= low && byte(1) <= high ? 3 : 0;
  }
  if (first > 0xF4 || size < 4 || !follows(1) || !follows(2) || !follows(3)) return 0;
  return (first != 0xF0 || byte(1) >= 0x90) && (first != 0xF4 || byte(1) <= 0x8F) ? 4 : 0;
}

// The end of the valid characters from `i`; `character` is what stands there.
size_t skip_valid(StringView text, size_t i, Character* character) {
  while (i < text.size()) {
    uint64_t eight;
    if (text.size() - i >= 8) {
      std::memcpy(&eight, text.data() + i, 8);
      if ((eight & 0x8080808080808080u) == 0) {
        i += 8;
        continue;
      }
    }
    // Most others have three bytes: of 0xE0, long forms are not valid, and of 0xED surrogates.
    while (text.size() - i >= 4) {
      uint32_t four;
      std::memcpy(&four, text.data() + i, 4);
      if ((four & 0xC0C0F0u) != 0x8080E0u || (four & 0x200Fu) == 0 || (four & 0x200Fu) == 0x200Du) {
        break;
      }
      i += 3;
    }
    while (text.size() - i >= 4) {
      uint32_t four;
      std::memcpy(&four, text.data() + i, 4);
      const uint32_t high = (four & 0x7u) << 2 | (four >> 12 & 0x3u);  // 65,536 characters
      if ((four & 0xC0C0C0F8u) != 0x808080F0u || high == 0 || high > 16) break;
      i += 4;
    }
    while (text.size() - i >= 2) {
      uint16_t two;
      std::memcpy(&two, text.data() + i, 2);
      if ((two & 0xC0E0u) != 0x80C0u || (two & 0x1Eu) == 0) break;
      i += 2;
    }
    if (i == text.size()) break;
    const size_t size = valid_size(text.data() + i, text.size() - i);
    if (size == 0) {
      *character = read_utf8(text.data() + i, text.size() - i);
      break;
    }
    i += size;
  }
  return i;
}

}  // namespace

size_t append_repaired(StringView text, bool keep_cut, std::string* out) {
  Character character;
  for (size_t i = 0;;) {
    const size_t end = skip_valid(text, i, &character);
    out->append(text.data() + i, end - i);
    if (end == text.size() || (keep_cut && character.cut)) return end;
    char bytes[4];
    out->append(bytes, write_utf8(kReplacement, bytes));
    i = end + character.bytes;
  }
}

bool is_utf8(StringView text) {
  Character character;
  return skip_valid(text, 0, &character) == text.size();
}

}  // namespace rushlight::llm
