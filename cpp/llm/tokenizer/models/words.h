// The words of a pre-tokenizer to tokens, by the model and by what the thread's cache holds.
//
// Long words are cut at places that nothing joins: between two characters that stand beside each
// other in no piece, and in no merge. The segments are found in the cache, also where a language
// has no spaces.
#pragma once

#include <cstdint>
#include <vector>

#include "rushlight/core/span.h"
#include "rushlight/llm/tokenizer/scratch.h"
#include "rushlight/llm/tokenizer/table.h"
#include "rushlight/llm/tokenizer/unicode/unicode.h"

namespace rushlight::llm {

class WordEncoder {
 public:
  // `identity` is that of the tokenizer in the caches, an even number.
  WordEncoder(const Table& table, uint32_t identity, Scratch* scratch, std::vector<int32_t>* out)
      : table_(table), identity_(identity), scratch_(*scratch), out_(*out) {}

  void encode(StringView word);

 private:
  // A text, and where it stands in the cache, or may be stored; null: it is too long.
  struct LookUp {
    StringView text;
    ShortWord key;
    uint32_t owner = 0;
    WordCache::Entry* entry = nullptr;
  };

  LookUp look_up(StringView text, uint32_t owner);
  template <class Use>
  void cut(StringView word, const Use& use) const;
  void bytes(StringView word);
  void characters(StringView word);
  void character_segment(const LookUp& one);
  bool add_character(const Point& point, StringView text);
  void fuse_unknown(size_t begin);
  bool fuses_unknown() const;
  bool ends_unknown(size_t end) const;
  void cached(const LookUp& one);
  bool may_begin_anew(StringView text) const;
  bool append_after(const LookUp& one);
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
