#include "rushlight/llm/tokenizer/models/spaced.h"

#include <cstring>

#include "rushlight/llm/tokenizer/normalizer/charsmap.h"
#include "rushlight/llm/tokenizer/normalizer/sentence_piece.h"
#include "rushlight/llm/tokenizer/operations.h"

namespace rushlight::llm {
namespace {

constexpr uint32_t kWanted = kCollapseSpaces | kDummyPrefix | kEscapeSpaces;

}  // namespace

// A character that becomes a space is one, unless it is in a longer text that is replaced or kept.
SpacedText::SpacedText(const Table& table, Scratch* scratch, WordEncoder* words)
    : table_(table), letters_(table.piece_trie, &scratch->letters), words_(*words) {
  if (!table.kept.empty()) return;
  for (const char one : {'\n', '\t', '\r'}) {
    const bool is_alone = table.charsmap_class(static_cast<uint8_t>(one)) == kReplacedAlone;
    if (is_alone && find_replacement(table, {&one, 1}, true).text == StringView(" ")) {
      spaces_ |= uint64_t{1} << one;
    }
  }
}

bool SpacedText::suits(const Table& table) {
  return table.settings.model == Model::Unigram32 && table.spaces_begin_pieces &&
         table.normalizer.size() == 1 && table.normalizer[0].kind == kSentencePiece &&
         (table.normalizer[0].a & (kWanted | kSuffix)) == kWanted && table.splitter.empty() &&
         table.added.empty() && (table.charsmap_class(' ') & kKeptSpace) != 0;
}

// Neighbouring chunks that are not known wait, and are normalised together. The chunk after each
// one is looked up first, so that its line of the cache has come by then.
void SpacedText::encode(StringView text) {
  words_.begin_text();
  waiting_ = {};
  size_t end = 0;
  WordEncoder::LookUp next = next_chunk(text, &end);
  while (!next.text.empty()) {
    const WordEncoder::LookUp one = next;
    next = next_chunk(text, &end);
    if (one.entry != nullptr && known(one)) continue;
    const StringView chunk = one.text;
    const char* begin = waiting_.empty() ? chunk.data() : waiting_.data();
    waiting_ = {begin, static_cast<size_t>(chunk.data() + chunk.size() - begin)};
  }
  flush(true);
}

// The chunk after the one that ends at `*end`, or nothing.
WordEncoder::LookUp SpacedText::next_chunk(StringView text, size_t* end) {
  size_t i = *end;
  while (i < text.size() && is_space(text.data()[i])) ++i;
  if (i == text.size()) return {};
  *end = next_space(text, i + 1);
  return words_.look_up_chunk({text.data() + i, *end - i});
}

// Whether the chunk's tokens are known, and were appended. Most chunks never come back: they are
// stored when they come for the second time, and once more often where another one came back that
// stands there. To store a chunk takes twice as long as to search it with those that wait.
bool SpacedText::known(const WordEncoder::LookUp& one) {
  if (words_.is_new(one)) {
    if (!words_.was_seen(one) || words_.keeps_place(one)) return false;
    words_.learn(one, normalize(one.text, false));
  } else {
    words_.note(one);
  }
  if (!words_.is_known(one)) return false;
  flush(false);
  // The segments of what was waiting may have taken the place.
  return !words_.is_new(one) && words_.append_known(one);
}

size_t SpacedText::next_space(StringView text, size_t i) const {
  constexpr uint64_t kEach = 0x0101010101010101u;
  for (;; ++i) {
    // Eight bytes of which none is less than the one after a space.
    for (uint64_t eight; text.size() - i >= 8; i += 8) {
      std::memcpy(&eight, text.data() + i, 8);
      if (((eight - (' ' + 1) * kEach) & ~eight & 0x80 * kEach) != 0) break;
    }
    while (i < text.size() && static_cast<uint8_t>(text.data()[i]) > ' ') ++i;
    if (i == text.size() || is_space(text.data()[i])) return i;
  }
}

// Encodes the chunks that wait.
void SpacedText::flush(bool is_last) {
  if (waiting_.empty()) return;
  words_.part(normalize(waiting_, is_last));
  waiting_ = {};
}

// A text that is not the last one is followed by a space, and begins as the first one does.
const Letters& SpacedText::normalize(StringView text, bool is_last) {
  letters_.clear();
  sentence_piece(table_, table_.normalizer[0].a, text, is_last, &letters_);
  return letters_;
}

}  // namespace rushlight::llm
