#include "rushlight/llm/tokenizer/tokenizer.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "rushlight/llm/memory/guard.h"
#include "rushlight/llm/tokenizer/added.h"
#include "rushlight/llm/tokenizer/models/bpe.h"
#include "rushlight/llm/tokenizer/models/unigram.h"
#include "rushlight/llm/tokenizer/models/word_piece.h"
#include "rushlight/llm/tokenizer/normalizer/normalizer.h"
#include "rushlight/llm/tokenizer/scratch.h"
#include "rushlight/llm/tokenizer/splitter/splitter.h"
#include "rushlight/llm/tokenizer/unicode/repair.h"

namespace rushlight::llm {
namespace {

constexpr size_t kLongestText = size_t{1} << 31;
constexpr char kLowBlock[] = "\xE2\x96\x81";  // U+2581, which stands for a space
constexpr size_t kLowBlockSize = 3;

// Not 0, which is nobody's.
uint32_t next_identity() {
  static std::atomic<uint32_t> count{0};
  uint32_t identity = ++count;
  while (identity == 0) identity = ++count;
  return identity;
}

bool is_low_block(StringView text, size_t i) {
  return text.data()[i] == kLowBlock[0] && text.size() - i >= kLowBlockSize &&
         text.data()[i + 1] == kLowBlock[1] && text.data()[i + 2] == kLowBlock[2];
}

// Takes a text through the stages: added tokens, normaliser, normalised added tokens,
// pre-tokenizer, model.
class Encoder final : public WordSink {
 public:
  Encoder(const Table& table, uint32_t identity, bool special, std::vector<int32_t>* out)
      : table_(table),
        identity_(identity),
        special_(special),
        scratch_(thread_scratch()),
        out_(out) {}

  void encode(StringView text) {
    Sections sections(this, &Encoder::normalized);
    find_added(table_, table_.raw_added, text, special_, &sections);
  }

  void word(StringView text) override {
    score_ = 0;
    if (!table_.has(kSpacesBeginWords)) return whole(text);
    // No piece goes across the beginning of a run of U+2581. A word waits until the next one is
    // looked up, so that its line of the cache has come by then.
    size_t begin = 0;
    bool after_block = true;
    LookUp waiting;
    const auto add = [&](size_t end) {
      const LookUp next = look_up({text.data() + begin, end - begin});
      if (!waiting.word.empty()) cached(waiting);
      waiting = next;
      begin = end;
    };
    for (size_t i = 0; i < text.size();) {
      if (!is_low_block(text, i)) {
        after_block = false;
        ++i;
        continue;
      }
      if (!after_block) add(i);
      after_block = true;
      i += kLowBlockSize;
    }
    if (text.size() > begin) add(text.size());
    if (!waiting.word.empty()) cached(waiting);
  }

 private:
  using Stage = void (Encoder::*)(StringView text, bool at_start);

  class Sections final : public AddedSink {
   public:
    Sections(Encoder* encoder, Stage stage, bool at_start = true)
        : encoder_(encoder), stage_(stage), at_start_(at_start) {}
    void between(StringView text, size_t begin) override {
      (encoder_->*stage_)(text, at_start_ && begin == 0);
    }
    void added(uint32_t token) override { encoder_->out_->push_back(static_cast<int32_t>(token)); }

   private:
    Encoder* encoder_;
    Stage stage_;
    bool at_start_;
  };

  void normalized(StringView text, bool at_start) {
    Sections sections(this, &Encoder::split, at_start);
    find_added(table_, table_.added, normalize(table_, text, &scratch_), special_, &sections);
  }

  void split(StringView text, bool at_start) {
    split_words(table_, text, at_start, &scratch_, this);
  }

  // A word that no other follows. The cache pays for a text that is not split only if its tokens
  // do not depend on what stands before them.
  void whole(StringView word) {
    if (table_.settings.model == Model::Unigram32) return model(word);
    cached(look_up(word));
  }

  // A word, and where it stands in the cache, or may be stored; null: it is too long.
  struct LookUp {
    StringView word;
    ShortWord key;
    WordCache::Entry* entry = nullptr;
  };

  LookUp look_up(StringView word) {
    if (word.size() > ShortWord::kLongest) return {word, {}, nullptr};
    const ShortWord key(word);
    WordCache::Entry* entry = &scratch_.cache.at(key, identity_);
    __builtin_prefetch(entry);
    return {word, key, entry};
  }

  void cached(const LookUp& one) {
    const auto [word, key, entry] = one;
    if (entry == nullptr) return model(word);
    if (table_.settings.model == Model::Unigram32) return cached_after(word, key, entry);
    if (entry->holds(key, identity_)) return append(*entry);
    const size_t begin = out_->size();
    model(word);
    const size_t n = out_->size() - begin;
    if (n <= WordCache::kMostTokens) entry->store(key, identity_, out_->data() + begin, n);
  }

  // A word whose tokens depend on the score before it, if that exceeds the entry's limit.
  void cached_after(StringView word, const ShortWord& key, WordCache::Entry* entry) {
    const size_t begin = out_->size();
    if (entry->holds(key, identity_)) {
      if (std::fabs(score_) >= entry->limit * kLimitStep) return model(word);
      append(*entry);
      return add_scores(begin);
    }
    const double limit = encode_unigram_anywhere(table_, word, &scratch_, out_);
    const size_t n = out_->size() - begin;
    const bool fits = n <= WordCache::kMostTokens;
    entry->store(key, identity_, out_->data() + begin, fits ? n : 0);
    entry->limit = fits ? limit_of(limit) : 0;
    if (std::fabs(score_) < limit) return add_scores(begin);
    out_->resize(begin);
    model(word);
  }
  // Of the tokens from `begin` on.
  void add_scores(size_t begin) {
    for (size_t i = begin; i < out_->size(); ++i) {
      score_ = static_cast<float>(score_ + table_.scores[static_cast<size_t>((*out_)[i])]);
    }
  }
  static uint16_t limit_of(double limit) {
    const double steps = std::min(limit / kLimitStep, 65535.0);
    return steps >= 0 ? static_cast<uint16_t>(steps) : uint16_t{0};  // NaN is not
  }

  void append(const WordCache::Entry& entry) {
    for (size_t i = 0; i < entry.tokens; ++i) out_->push_back(entry.token[i]);
  }

  void model(StringView word) {
    switch (table_.settings.model) {
      case Model::Bpe:
        return encode_bpe(table_, word, &scratch_, out_);
      case Model::WordPiece:
        return encode_word_piece(table_, word, out_);
      case Model::Unigram32:
        return encode_unigram_after(table_, word, &score_, &scratch_, out_);
      default:
        return encode_unigram(table_, word, &scratch_, out_);
    }
  }

  static constexpr double kLimitStep = 16;

  const Table& table_;
  uint32_t identity_;
  bool special_;
  Scratch& scratch_;
  std::vector<int32_t>* out_;
  double score_ = 0;  // of the text before a word, in models of SentencePiece
};

}  // namespace

Scratch& thread_scratch() {
  static thread_local Scratch scratch;
  return scratch;
}

Result<Tokenizer> Tokenizer::open(Span<const uint8_t> table, Message* message) {
  Result<Table> opened =
      guard("read the tokenizer", message, [&] { return Table::open(table, message); });
  if (!opened.ok()) return opened.status();
  Tokenizer tokenizer;
  tokenizer.table_ = opened.value();
  tokenizer.identity_ = next_identity();
  return tokenizer;
}

Status Tokenizer::encode(StringView text, bool add_special, bool parse_special,
                         std::vector<int32_t>* out, Message* message) const {
  if (text.size() >= kLongestText) {
    return message->fail(Code::InvalidArgument,
                         "the text has %zu bytes, and at most %zu can be made tokens of at once",
                         text.size(), kLongestText - 1);
  }
  const auto surround = [&](Span<const uint32_t> tokens) {
    for (const uint32_t token : tokens) out->push_back(static_cast<int32_t>(token));
  };
  const size_t before = out->size();
  const bool has_memory = has_memory_for([&] {
    if (add_special) surround(table_.before);
    Encoder encoder(table_, identity_, parse_special, out);
    if (is_utf8(text)) {
      encoder.encode(text);
    } else {
      std::string repaired;
      append_repaired(text, false, &repaired);
      encoder.encode({repaired.data(), repaired.size()});
    }
    if (add_special) surround(table_.after);
  });
  thread_scratch().shrink();
  if (has_memory) return {};
  out->resize(before);
  return out_of_memory("encode the text", message);
}

StringView Tokenizer::piece(int32_t token) const {
  return has(token) ? table_.piece(static_cast<uint32_t>(token)) : StringView();
}

void Tokenizer::append_piece(int32_t token, bool* at_start, std::string* out) const {
  if (!has(token)) return;
  StringView bytes = piece(token);
  const StartRule rule = *at_start && !is(token, kSpecialToken | kVerbatimToken)
                             ? table_.settings.start_rule
                             : StartRule::None;
  if (!*at_start && is(token, kSpecialToken) && table_.has(kSpacedSpecial)) out->push_back(' ');
  const bool spaced = !bytes.empty() && bytes.data()[0] == ' ';
  if (rule == StartRule::WordPiece && is(token, kContinuingToken)) {
    out->append("##");
  } else if (rule != StartRule::None && rule != StartRule::DropSpaces && spaced) {
    bytes = {bytes.data() + 1, bytes.size() - 1};
  }
  if (rule != StartRule::StripEach || !bytes.empty()) *at_start = false;
  if (rule != StartRule::DropSpaces) {
    out->append(bytes.data(), bytes.size());
    return;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes.data()[i] != ' ') out->push_back(bytes.data()[i]);
  }
}

std::string Tokenizer::decode(Span<const int32_t> tokens, bool skip_special) const {
  std::string bytes, text;
  bool at_start = true;
  for (const int32_t token : tokens) {
    if (skip_special && is_special(token)) continue;
    append_piece(token, &at_start, &bytes);
  }
  append_repaired({bytes.data(), bytes.size()}, false, &text);
  return text;
}

int32_t Tokenizer::special(StringView text) const {
  for (const AddedToken& added : table_.added_tokens) {
    if (table_.text(added.text, added.text_size) == text) return static_cast<int32_t>(added.token);
  }
  return -1;
}

}  // namespace rushlight::llm
