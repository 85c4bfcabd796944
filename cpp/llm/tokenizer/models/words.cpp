#include "rushlight/llm/tokenizer/models/words.h"

#include <algorithm>
#include <cmath>

#include "rushlight/llm/tokenizer/models/bpe.h"
#include "rushlight/llm/tokenizer/models/longest.h"
#include "rushlight/llm/tokenizer/models/unigram.h"
#include "rushlight/llm/tokenizer/models/word_piece.h"

namespace rushlight::llm {
namespace {

constexpr double kLimitStep = 16;

uint16_t limit_of(double limit) {
  const double steps = std::min(limit / kLimitStep, 65535.0);
  return steps >= 0 ? static_cast<uint16_t>(steps) : uint16_t{0};  // NaN is not
}

}  // namespace

void WordEncoder::encode(StringView word) {
  begin_text();
  if (word.empty()) return;
  const Model model = table_.settings.model;
  if (model == Model::Bpe && table_.has(kByteLevel)) return bytes(word);
  if (model == Model::Bpe) return characters(word);
  if (model == Model::Unigram32) {
    Letters letters(table_.piece_trie, &scratch_.letters);
    letters.add(word);
    return part(letters);
  }
  cached(look_up(word, identity_));
}

WordEncoder::LookUp WordEncoder::look_up(StringView text, uint32_t owner) {
  if (text.size() > ShortWord::kLongest) return {text, {}, owner, nullptr};
  const ShortWord key(text);
  WordCache::Entry* entry = &scratch_.cache.at(key, owner);
  __builtin_prefetch(entry);
  return {text, key, owner, entry};
}

// Calls `use(begin, end, first)` for each segment, with its first character.
template <class Use>
void WordEncoder::cut(StringView word, const Use& use) const {
  const char* text = word.data();
  const size_t size = word.size();
  Point first = read_point(text, size), last = first;
  size_t begin = 0;
  for (size_t i = last.bytes; i < size;) {
    const Point next = read_point(text + i, size - i);
    if (!table_.may_join(last.code, next.code)) {
      use(begin, i, first);
      begin = i;
      first = next;
    }
    last = next;
    i += next.bytes;
  }
  use(begin, size, first);
}

// The words of models over bytes mostly come back.
void WordEncoder::bytes(StringView word) {
  const LookUp one = look_up(word, identity_);
  if (one.entry != nullptr && one.entry->holds(one.key, identity_)) return append(*one.entry);
  if (!encode_longest(table_, identity_, word, &scratch_, &out_)) {
    const bool may_be_word = table_.has(kIgnoreMerges) && !table_.words.empty();
    const uint32_t token = may_be_word ? table_.word(word) : kNone;
    if (token != kNone) {
      out_.push_back(static_cast<int32_t>(token));
    } else {
      encode_bpe(table_, word, &scratch_, &out_);
    }
  }
  store(one, begin_);
}

// A segment waits until the next one is looked up, so that its line of the cache has come by then.
void WordEncoder::characters(StringView word) {
  LookUp segments[2];
  size_t turn = 0;
  const auto flush = [&] {
    LookUp& waiting = segments[1 - turn];
    const size_t before = out_.size();
    if (!waiting.text.empty()) cached(waiting);
    waiting.text = {};
    fuse_unknown(before);
  };
  cut(word, [&](size_t begin, size_t end, const Point& first) {
    const StringView text(word.data() + begin, end - begin);
    if (text.size() == first.bytes) {
      flush();
      return add_character(first, text);
    }
    segments[turn] = look_up(text, identity_);
    flush();
    turn = 1 - turn;
  });
  flush();
}

// A segment of one character.
void WordEncoder::add_character(const Point& point, StringView text) {
  const uint32_t token = table_.character(point.code);
  if (token != kNone) {
    out_.push_back(static_cast<int32_t>(token));
  } else if (table_.has(kByteFallback) || !fuses_unknown() || !ends_unknown(out_.size())) {
    append_unknown(table_, text, &out_);
  }
}

// Neighbouring unknown characters are one token, where segments meet as well.
void WordEncoder::fuse_unknown(size_t begin) {
  if (begin != out_.size() && ends_unknown(begin) && ends_unknown(begin + 1) && fuses_unknown()) {
    out_.erase(out_.begin() + static_cast<ptrdiff_t>(begin));
  }
}

bool WordEncoder::fuses_unknown() const {
  return table_.settings.model == Model::Unigram32 || table_.has(kFuseUnknown);
}

// Whether the word's tokens before `end` end with an unknown one.
bool WordEncoder::ends_unknown(size_t end) const {
  return end > begin_ && out_[end - 1] == static_cast<int32_t>(table_.settings.unknown);
}

void WordEncoder::cached(const LookUp& one) {
  if (one.entry == nullptr) return model(one.text);
  if (one.entry->holds(one.key, one.owner)) return append(*one.entry);
  const size_t begin = out_.size();
  model(one.text);
  store(one, begin);
}

// The tokens from `begin` on.
void WordEncoder::store(const LookUp& one, size_t begin) {
  const size_t n = out_.size() - begin;
  if (one.entry == nullptr || n > WordCache::kMostTokens) return;
  one.entry->store(one.key, one.owner, out_.data() + begin, n);
}

void WordEncoder::part(const Letters& letters) {
  const size_t begin = out_.size();
  encode_unigram_after(table_, letters, &score_, &scratch_, &out_);
  fuse_unknown(begin);
}

void WordEncoder::learn(const LookUp& one, const Letters& letters) {
  const size_t begin = out_.size();
  double limit = -1;
  if (letters.size() > 1 && letters.size() <= kLongestStored && !letters.ends_with(kLowBlock)) {
    limit = encode_unigram_anywhere(table_, letters, &scratch_, &out_);
  }
  const size_t n = out_.size() - begin;
  const bool fits = limit >= kLimitStep && n <= WordCache::kMostTokens;
  one.entry->store(one.key, one.owner, out_.data() + begin, fits ? n : 0);
  one.entry->limit = fits ? limit_of(limit) : 0;
  out_.resize(begin);
}

// Within a text that may bring the score beyond kFarthestScore, it may begin anew.
bool WordEncoder::append_known(const LookUp& one) {
  const size_t begin = out_.size();
  const double score = std::fabs(score_);
  if (score >= one.entry->limit * kLimitStep) return false;
  if (score + kLongestStored * table_.greatest_score > kFarthestScore) return false;
  append(*one.entry);
  add_scores(begin);
  return true;
}

// Of the tokens from `begin` on.
void WordEncoder::add_scores(size_t begin) {
  for (size_t i = begin; i < out_.size(); ++i) {
    score_ = static_cast<float>(score_ + table_.scores[static_cast<size_t>(out_[i])]);
  }
}

void WordEncoder::append(const WordCache::Entry& entry) {
  for (size_t i = 0; i < entry.tokens; ++i) out_.push_back(entry.token[i]);
}

void WordEncoder::model(StringView text) {
  switch (table_.settings.model) {
    case Model::Bpe:
      if (encode_longest(table_, identity_, text, &scratch_, &out_)) return;
      return encode_bpe(table_, text, &scratch_, &out_);
    case Model::WordPiece:
      return encode_word_piece(table_, text, &out_);
    default:
      return encode_unigram(table_, text, &scratch_, &out_);
  }
}

}  // namespace rushlight::llm
