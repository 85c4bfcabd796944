#include "rushlight/llm/tokenizer/added.h"

#include "rushlight/llm/tokenizer/unicode/unicode.h"

namespace rushlight::llm {
namespace {

struct Match {
  size_t begin, end;
  uint32_t index;  // of the added token, or kNone
};

class Search {
 public:
  Search(const Trie& trie, StringView text) : trie_(trie), text_(text) {}

  Match next(size_t from) const {
    const char* text = text_.data();
    const size_t size = text_.size();
    for (size_t i = next_start(from); i < size; i = next_start(i + 1)) {
      uint32_t node = trie_.starts[static_cast<uint8_t>(text[i])];
      Match match{i, i, kNone};
      for (size_t end = i + 1; node != 0; ++end) {
        if (trie_.values[node] != kNone) match = {i, end, trie_.values[node]};
        node = end < size ? trie_.child(node, static_cast<uint8_t>(text[end])) : 0;
      }
      if (match.index != kNone) return match;
    }
    return {size, size, kNone};
  }

  // Where a token may begin next.
  size_t next_start(size_t from) const {
    const char* text = text_.data();
    if (from < text_.size() && trie_.only_start != kNone) {
      const void* start =
          std::memchr(text + from, static_cast<int>(trie_.only_start), text_.size() - from);
      return start != nullptr ? static_cast<size_t>(static_cast<const char*>(start) - text)
                              : text_.size();
    }
    size_t i = from;
    while (i < text_.size() && trie_.starts[static_cast<uint8_t>(text[i])] == 0) ++i;
    return i;
  }
  // Whether a token that must be a word by itself is one here.
  bool is_single(const Match& match) const {
    const size_t before = previous(match.begin);
    return !((before != match.begin && is(before, kWord)) ||
             (match.end < text_.size() && is(match.end, kWord)));
  }
  size_t before_spaces(size_t at, size_t least) const {
    while (at > least) {
      const size_t i = previous(at);
      if (i < least || !is(i, kSpace)) break;
      at = i;
    }
    return at;
  }
  size_t after_spaces(size_t at) const {
    while (at < text_.size() && is(at, kSpace)) at += bytes(at);
    return at;
  }

 private:
  bool is(size_t i, uint16_t classes) const {
    return (classes_of(read_point(text_.data() + i, text_.size() - i).code) & classes) != 0;
  }
  size_t bytes(size_t i) const { return read_point(text_.data() + i, text_.size() - i).bytes; }
  // Where the character before `at` begins.
  size_t previous(size_t at) const {
    size_t i = at;
    while (i > 0 && at - i < 4) {
      --i;
      if ((static_cast<uint8_t>(text_.data()[i]) & 0xC0) != 0x80) break;
    }
    return i;
  }

  const Trie& trie_;
  StringView text_;
};

}  // namespace

void find_added(const Table& table, const Trie& trie, StringView text, bool special,
                AddedSink* sink) {
  if (trie.empty()) return sink->between(text, 0);
  const Search search(trie, text);
  size_t done = 0;
  for (Match match = search.next(0); match.index != kNone; match = search.next(match.end)) {
    const AddedToken& token = table.added_tokens[match.index];
    if (!special && (token.flags & kSpecialAdded) != 0) continue;
    if ((token.flags & kSingleWord) != 0 && !search.is_single(match)) continue;
    size_t begin = match.begin, end = match.end;
    if ((token.flags & kLeftStrip) != 0) begin = search.before_spaces(begin, done);
    if ((token.flags & kRightStrip) != 0) end = search.after_spaces(end);
    if (begin > done) sink->between({text.data() + done, begin - done}, done);
    sink->added(token.token);
    done = end;
  }
  if (done < text.size()) sink->between({text.data() + done, text.size() - done}, done);
}

}  // namespace rushlight::llm
