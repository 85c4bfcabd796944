#include "rushlight/llm/tokenizer/normalizer/charsmap.h"

namespace rushlight::llm {
namespace {

// A unit of the double array: where the children are, the label, and whether a text ends here.
size_t children(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }
uint32_t label(uint32_t unit) { return unit & (1u << 31 | 0xFF); }
bool has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }

}  // namespace

Replacement find_replacement(const Table& table, StringView text, bool longest) {
  const Span<const uint32_t> units = table.charsmap_units;
  Replacement replacement;
  if (units.empty()) return replacement;
  size_t node = children(units[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text.data()[i]);
    node ^= byte;
    if (node >= units.size() || label(units[node]) != byte) break;
    const uint32_t unit = units[node];
    node ^= children(unit);
    if (!has_value(unit) || node >= units.size()) continue;
    const size_t start = units[node] & 0x7FFFFFFF;
    if (start >= table.charsmap_texts.size()) break;
    // The texts end with a zero, and so does the last one.
    replacement.text =
        StringView(reinterpret_cast<const char*>(table.charsmap_texts.data()) + start);
    replacement.replaced = i + 1;
    if (!longest) break;
  }
  return replacement;
}

}  // namespace rushlight::llm
