#include "rushlight/llm/tokenizer/models/word_piece.h"

#include "rushlight/llm/tokenizer/unicode/unicode.h"

namespace rushlight::llm {
namespace {

constexpr uint8_t kContinuing[] = {'#', '#'};

size_t characters(StringView word, size_t most) {
  size_t n = 0;
  for (size_t i = 0; i < word.size() && n <= most; ++n) {
    i += read_point(word.data() + i, word.size() - i).bytes;
  }
  return n;
}

}  // namespace

void encode_word_piece(const Table& table, StringView word, std::vector<int32_t>* out) {
  const Trie& trie = table.model;
  const size_t before = out->size();
  const auto unknown = [&] {
    out->resize(before);
    if (table.settings.unknown != kNone) {
      out->push_back(static_cast<int32_t>(table.settings.unknown));
    }
  };
  const size_t longest = table.settings.longest_word;
  if (trie.empty() || characters(word, longest) > longest) return unknown();
  uint32_t continuing = trie.child(0, kContinuing[0]);
  if (continuing != 0) continuing = trie.child(continuing, kContinuing[1]);
  for (size_t begin = 0; begin < word.size();) {
    uint32_t node = begin == 0 ? 0 : continuing, token = kNone;
    size_t end = begin;
    for (size_t i = begin; i < word.size() && (node != 0 || begin == 0); ++i) {
      node = trie.child(node, static_cast<uint8_t>(word.data()[i]));
      if (node == 0) break;
      if (trie.values[node] == kNone) continue;
      token = trie.values[node];
      end = i + 1;
    }
    if (token == kNone) return unknown();
    out->push_back(static_cast<int32_t>(token));
    begin = end;
  }
}

}  // namespace rushlight::llm
