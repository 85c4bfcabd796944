#include "rushlight/llm/tokenizer/tokenizer.h"

#include <atomic>
#include <memory>

#include "rushlight/llm/memory/guard.h"
#include "rushlight/llm/tokenizer/added.h"
#include "rushlight/llm/tokenizer/models/spaced.h"
#include "rushlight/llm/tokenizer/models/words.h"
#include "rushlight/llm/tokenizer/normalizer/normalizer.h"
#include "rushlight/llm/tokenizer/scratch.h"
#include "rushlight/llm/tokenizer/splitter/splitter.h"
#include "rushlight/llm/tokenizer/unicode/repair.h"

namespace rushlight::llm {
namespace {

constexpr size_t kLongestText = size_t{1} << 31;

// An even number, and not 0, which is nobody's.
uint32_t next_identity() {
  static std::atomic<uint32_t> count{0};
  uint32_t identity = count += 2;
  while (identity == 0) identity = count += 2;
  return identity;
}

// Takes a text through the stages: added tokens, normaliser, normalised added tokens,
// pre-tokenizer, model.
class Encoder final : public WordSink {
 public:
  Encoder(const Table& table, uint32_t identity, bool special, Scratch* scratch,
          std::vector<int32_t>* out)
      : table_(table),
        special_(special),
        scratch_(*scratch),
        out_(out),
        words_(table, identity, &scratch_, out),
        is_spaced_(SpacedText::suits(table)) {}

  void encode(StringView text) {
    Sections sections(this, &Encoder::normalized);
    find_added(table_, table_.raw_added, text, special_, &sections);
  }

  void word(StringView text) override { words_.encode(text); }

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
    if (is_spaced_) return SpacedText(table_, &scratch_, &words_).encode(text);
    Sections sections(this, &Encoder::split, at_start);
    find_added(table_, table_.added, normalize(table_, text, &scratch_), special_, &sections);
  }

  void split(StringView text, bool at_start) {
    split_words(table_, text, at_start, &scratch_, this);
  }

  const Table& table_;
  bool special_;
  Scratch& scratch_;
  std::vector<int32_t>* out_;
  WordEncoder words_;
  bool is_spaced_;
};

}  // namespace

// A pointer, as a loader has little room for the thread-local variables of shared libraries that
// are loaded late.
Scratch* thread_scratch() {
  static thread_local std::unique_ptr<Scratch> scratch;
  if (scratch == nullptr) scratch = std::make_unique<Scratch>();
  return scratch.get();
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
  if (text.size() >= kLongestText || is_utf8(text)) {
    return encode_utf8(text, add_special, parse_special, out, message);
  }
  std::string repaired;
  if (!has_memory_for([&] { append_repaired(text, false, &repaired); })) {
    return out_of_memory("encode the text", message);
  }
  return encode_utf8({repaired.data(), repaired.size()}, add_special, parse_special, out, message);
}

Status Tokenizer::encode_utf8(StringView text, bool add_special, bool parse_special,
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
  Scratch* scratch = nullptr;
  const bool has_memory = has_memory_for([&] {
    scratch = thread_scratch();
    if (add_special) surround(table_.before);
    Encoder(table_, identity_, parse_special, scratch, out).encode(text);
    if (add_special) surround(table_.after);
  });
  if (scratch != nullptr) scratch->shrink();
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
