// The words of a pre-tokenizer to tokens, by the model and by what the thread's cache holds.
//
// Long words of BPE over characters are cut at places that nothing joins: between two characters
// that no merge has beside each other. The segments are found in the cache, also where a language
// has no spaces.
#pragma once

#include <cstdint>
#include <vector>

#include "rushlight/core/span.h"
#include "rushlight/llm/tokenizer/letters.h"
#include "rushlight/llm/tokenizer/scratch.h"
#include "rushlight/llm/tokenizer/table.h"
#include "rushlight/llm/tokenizer/unicode/unicode.h"

namespace rushlight::llm {

class WordEncoder {
 public:
  // A text, and where it stands in the cache, or may be stored; null: it is too long.
  struct LookUp {
    StringView text;
    ShortWord key;
    uint32_t owner = 0;
    WordCache::Entry* entry = nullptr;
  };

  // `identity` is that of the tokenizer in the caches, an even number.
  WordEncoder(const Table& table, uint32_t identity, Scratch* scratch, std::vector<int32_t>* out)
      : table_(table), identity_(identity), scratch_(*scratch), out_(*out) {}

  void encode(StringView word);

  // Of SentencePiece's unigram models, a text that comes in parts, none of which a piece joins with
  // the next one.
  void begin_text() {
    begin_ = out_.size();
    score_ = 0;
  }
  void part(const Letters& letters);
  // A part as it stands in the text, of at most ShortWord::kLongest bytes, in the cache.
  LookUp look_up_chunk(StringView chunk) { return look_up(chunk, identity_ | kOfChunks); }
  bool is_new(const LookUp& one) const { return !one.entry->holds(one.key, one.owner); }
  // Whether a part that is new was looked up before, as far as is known.
  bool was_seen(const LookUp& one) { return scratch_.cache.was_seen(one.key, one.owner); }
  // Whether what stands in the place of a part that is new came back since this was last asked.
  bool keeps_place(const LookUp& one) {
    const bool came_back = one.entry->came_back != 0;
    one.entry->came_back = 0;
    return came_back;
  }
  // Notes that a part, which is not new, came back.
  void note(const LookUp& one) {
    if (one.entry->came_back == 0) one.entry->came_back = 1;
  }
  // Whether the cache has the tokens of a part that is not new.
  bool is_known(const LookUp& one) const { return one.entry->tokens != 0; }
  // Stores the tokens of the part's normalised text; or that the cache can not have them: there are
  // too many, they depend on what stands beside the part, or there is nothing but a space.
  void learn(const LookUp& one, const Letters& letters);
  // Appends the part's tokens. False: they may depend on what stands before.
  bool append_known(const LookUp& one);

 private:
  static constexpr uint32_t kOfChunks = 1;      // in the cache, beside the tokenizer's words
  static constexpr size_t kLongestStored = 64;  // letters of a part whose tokens are stored

  LookUp look_up(StringView text, uint32_t owner);
  template <class Use>
  void cut(StringView word, const Use& use) const;
  void bytes(StringView word);
  void characters(StringView word);
  void add_character(const Point& point, StringView text);
  void fuse_unknown(size_t begin);
  bool fuses_unknown() const;
  bool ends_unknown(size_t end) const;
  void cached(const LookUp& one);
  void store(const LookUp& one, size_t begin);
  void add_scores(size_t begin);
  void append(const WordCache::Entry& entry);
  void model(StringView text);

  const Table& table_;
  uint32_t identity_;
  Scratch& scratch_;
  std::vector<int32_t>& out_;
  size_t begin_ = 0;  // of the word's tokens
  double score_ = 0;  // of the word so far, in models of SentencePiece
};

}  // namespace rushlight::llm
