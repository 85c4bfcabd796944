#include "rushlight/llm/tokenizer/repair.h"

#include <cstdint>

#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm {
namespace {

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
    *character = read_utf8(text.data() + i, text.size() - i);
    if (!character->valid) break;
    i += character->bytes;
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
