#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm {
namespace {

// What the first byte of a character says: its length, its bits, and the range of the second byte,
// which alone excludes overlong forms, surrogates and codes beyond U+10FFFF.
struct Lead {
  uint32_t bytes;
  uint32_t bits;
  uint8_t low, high;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, byte, 0, 0};
  if (byte >= 0xC2 && byte < 0xE0) return {2, byte & 0x1Fu, 0x80, 0xBF};
  if (byte >= 0xE0 && byte < 0xF0) {
    const uint8_t low = byte == 0xE0 ? 0xA0 : 0x80, high = byte == 0xED ? 0x9F : 0xBF;
    return {3, byte & 0x0Fu, low, high};
  }
  if (byte >= 0xF0 && byte < 0xF5) {
    const uint8_t low = byte == 0xF0 ? 0x90 : 0x80, high = byte == 0xF4 ? 0x8F : 0xBF;
    return {4, byte & 0x07u, low, high};
  }
  return {0, 0, 0, 0};
}

}  // namespace

Character read_utf8(const char* text, size_t size) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text);
  const Lead lead = lead_of(bytes[0]);
  Character character;
  if (lead.bytes == 0) return character;
  uint32_t code = lead.bits;
  for (uint32_t i = 1; i < lead.bytes; ++i) {
    character.bytes = i;
    if (i >= size) {
      character.cut = true;
      return character;
    }
    const uint8_t low = i == 1 ? lead.low : 0x80, high = i == 1 ? lead.high : 0xBF;
    if (bytes[i] < low || bytes[i] > high) return character;
    code = code << 6 | (bytes[i] & 0x3Fu);
  }
  return {code, lead.bytes, true, false};
}

size_t write_utf8(uint32_t code, char* out) {
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = kReplacement;
  if (code < 0x80) {
    out[0] = static_cast<char>(code);
    return 1;
  }
  const size_t bytes = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = bytes - 1; i > 0; --i) {
    out[i] = static_cast<char>(0x80 | (code & 0x3F));
    code >>= 6;
  }
  const uint32_t marks[] = {0xC0, 0xE0, 0xF0};
  out[0] = static_cast<char>(marks[bytes - 2] | code);
  return bytes;
}

}  // namespace rushlight::llm
