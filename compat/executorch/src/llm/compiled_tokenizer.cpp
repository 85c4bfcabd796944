// Tokenizers that were compiled to tables.
#include <pytorch/tokenizers/compiled_tokenizer.h>
#include <pytorch/tokenizers/tiktoken.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "files.h"
#include "rushlight/llm/runner/metadata.h"
#include "rushlight/llm/runner/program_model.h"
#include "rushlight/llm/tokenizer/tokenizer.h"
#include "rushlight/module/module.h"

namespace tokenizers {
namespace {

using ::rushlight::Message;
using ::rushlight::Span;
using ::rushlight::StringView;

constexpr char kTokenizerKey[] = "rushlight/tokenizer";
constexpr char kTableStart[] = "RLTK";
constexpr char kProgramStart[] = "ET12";  // behind four bytes

bool has_at(const std::string& bytes, size_t at, const char* text) {
  return bytes.size() >= at + 4 && std::memcmp(bytes.data() + at, text, 4) == 0;
}

// Texts of tokens that begin and end a text, for tables that do not surround a text by them.
constexpr const char* kBeginnings[] = {"<|begin_of_text|>", "<s>", "<bos>", "<|startoftext|>",
                                       "[CLS]"};
constexpr const char* kEnds[] = {"<|end_of_text|>", "</s>",       "<eos>",
                                 "<|endoftext|>",   "<|im_end|>", "[SEP]"};

}  // namespace

struct CompiledTokenizer::Impl {
  std::vector<uint64_t> memory;  // begins at a multiple of 8 bytes, as a table must
  size_t size = 0;
  ::rushlight::llm::Tokenizer tokenizer;
  bool has_bos = false, has_eos = false;
};

CompiledTokenizer::CompiledTokenizer() : impl_(std::make_unique<Impl>()) {}
CompiledTokenizer::~CompiledTokenizer() = default;

const void* CompiledTokenizer::table_data() const { return impl_->memory.data(); }
size_t CompiledTokenizer::table_size() const { return impl_->size; }

Error CompiledTokenizer::open(const void* table, size_t size) {
  auto impl = std::make_unique<Impl>();
  impl->memory.resize((size + 7) / 8);
  impl->size = size;
  if (size > 0) std::memcpy(impl->memory.data(), table, size);
  Message message;
  ::rushlight::Result<::rushlight::llm::Tokenizer> opened = ::rushlight::llm::Tokenizer::open(
      {reinterpret_cast<const uint8_t*>(impl->memory.data()), size}, &message);
  TK_CHECK_OR_RETURN_ERROR(opened.ok(), ParseFailure, "%s", message.text());
  impl->tokenizer = opened.value();
  impl_ = std::move(impl);
  vocab_size_ = static_cast<int32_t>(impl_->tokenizer.vocabulary());
  return Error::Ok;
}

Error CompiledTokenizer::load_table(const void* data, size_t size) {
  TK_CHECK_OK_OR_RETURN_ERROR(open(data, size));
  find_ends();
  initialized_ = true;
  return Error::Ok;
}

// What the table puts around a text says which tokens begin and end one; else their names do.
void CompiledTokenizer::find_ends() {
  const auto encode_with = [&](bool special) {
    std::vector<int32_t> tokens;
    Message message;
    (void)impl_->tokenizer.encode("a", special, false, &tokens, &message);
    return tokens;
  };
  const std::vector<int32_t> text = encode_with(false), whole = encode_with(true);
  const auto found = std::search(whole.begin(), whole.end(), text.begin(), text.end());
  const auto named = [&](const char* const* begin, const char* const* end) {
    for (; begin != end; ++begin) {
      const int32_t token = impl_->tokenizer.special(*begin);
      if (token >= 0) return token;
    }
    return int32_t{-1};
  };
  const bool has_before = found != whole.end() && found != whole.begin();
  const bool has_after =
      found != whole.end() && found + static_cast<std::ptrdiff_t>(text.size()) != whole.end();
  const int32_t bos =
      has_before ? whole.front() : named(std::begin(kBeginnings), std::end(kBeginnings));
  const int32_t eos = has_after ? whole.back() : named(std::begin(kEnds), std::end(kEnds));
  if (bos >= 0) set_bos(static_cast<uint64_t>(bos));
  if (eos >= 0) set_eos(static_cast<uint64_t>(eos));
}

void CompiledTokenizer::set_bos(uint64_t token) {
  bos_tok_ = token;
  impl_->has_bos = true;
}

void CompiledTokenizer::set_eos(uint64_t token) {
  eos_tok_ = token;
  impl_->has_eos = true;
}

Error CompiledTokenizer::load(const std::string& tokenizer_path) {
  if (initialized_) return Error::Ok;
  std::string bytes;
  TK_CHECK_OR_RETURN_ERROR(internal::read_file(tokenizer_path, &bytes), LoadFailure,
                           "the tokenizer %s cannot be read: a table, or a program with one, is "
                           "expected there",
                           tokenizer_path.c_str());
  if (has_at(bytes, 0, kTableStart)) return load_table(bytes.data(), bytes.size());
  TK_CHECK_OR_RETURN_ERROR(
      has_at(bytes, 4, kProgramStart), LoadFailure,
      "%s is no compiled tokenizer. Give the program (.pte) of a model that was exported with its "
      "tokenizer, or compile this one: in Python, open('tokenizer.table', "
      "'wb').write(rushlight.llm.tokenizer.compile('the model's folder')), and give that file",
      tokenizer_path.c_str());
  ::rushlight::Module module;
  TK_CHECK_OR_RETURN_ERROR(module.open(tokenizer_path.c_str()).ok(), ParseFailure, "%s",
                           module.message().text());
  const ::rushlight::Result<Span<const uint8_t>> table = module.program().get(kTokenizerKey);
  TK_CHECK_OR_RETURN_ERROR(table.ok(), LoadFailure,
                           "the program %s has no tokenizer: export it with one",
                           tokenizer_path.c_str());
  TK_CHECK_OK_OR_RETURN_ERROR(load_table(table.value().data(), table.value().size()));
  const ::rushlight::Result<Span<const uint8_t>> json =
      module.program().get(::rushlight::llm::kMetadataKey);
  if (!json.ok()) return Error::Ok;
  Message message;
  const ::rushlight::Result<::rushlight::llm::Metadata> metadata = ::rushlight::llm::read_metadata(
      {reinterpret_cast<const char*>(json.value().data()), json.value().size()}, &message);
  if (!metadata.ok()) return Error::Ok;
  const int32_t bos = metadata.value().bos;
  const std::vector<int32_t>& ends = metadata.value().ends;
  if (bos >= 0) set_bos(static_cast<uint64_t>(bos));
  if (!ends.empty()) set_eos(static_cast<uint64_t>(ends[0]));
  return Error::Ok;
}

Error CompiledTokenizer::check(uint64_t token) const {
  if (!initialized_) return Error::Uninitialized;
  TK_CHECK_OR_RETURN_ERROR(token < static_cast<uint64_t>(vocab_size_), OutOfRange,
                           "there is no token %" PRIu64 " among %" PRId32, token, vocab_size_);
  return Error::Ok;
}

Result<std::string> CompiledTokenizer::id_to_piece(uint64_t token) const {
  TK_CHECK_OK_OR_RETURN_ERROR(check(token));
  const StringView piece = impl_->tokenizer.piece(static_cast<int32_t>(token));
  return std::string(piece.data(), piece.size());
}

Result<uint64_t> CompiledTokenizer::piece_to_id(const std::string& text) const {
  if (!initialized_) return Error::Uninitialized;
  const StringView wanted(text.data(), text.size());
  const int32_t special = impl_->tokenizer.special(wanted);
  if (special >= 0) return static_cast<uint64_t>(special);
  std::vector<int32_t> tokens;
  Message message;
  const bool encoded = impl_->tokenizer.encode(wanted, false, false, &tokens, &message).ok();
  if (encoded && tokens.size() == 1 && impl_->tokenizer.piece(tokens[0]) == wanted) {
    return static_cast<uint64_t>(tokens[0]);
  }
  for (int32_t token = 0; token < vocab_size_; ++token) {
    if (impl_->tokenizer.piece(token) == wanted) return static_cast<uint64_t>(token);
  }
  TK_LOG(Error, "no token is \"%s\"", text.c_str());
  return Error::OutOfRange;
}

Result<std::vector<uint64_t>> CompiledTokenizer::encode(const std::string& input, int8_t bos,
                                                        int8_t eos) const {
  if (!initialized_) return Error::Uninitialized;
  TK_CHECK_OR_RETURN_ERROR(bos >= 0 && eos >= 0, EncodeFailure,
                           "bos is %d and eos %d: neither may be negative", bos, eos);
  TK_CHECK_OR_RETURN_ERROR((bos == 0 || impl_->has_bos) && (eos == 0 || impl_->has_eos),
                           EncodeFailure, "the tokenizer has no token that %s a text",
                           bos > 0 && !impl_->has_bos ? "begins" : "ends");
  std::vector<int32_t> text;
  Message message;
  const bool encoded =
      impl_->tokenizer.encode({input.data(), input.size()}, false, true, &text, &message).ok();
  TK_CHECK_OR_RETURN_ERROR(encoded, EncodeFailure, "%s", message.text());
  std::vector<uint64_t> tokens(static_cast<size_t>(bos), bos_tok_);
  for (const int32_t token : text) tokens.push_back(static_cast<uint64_t>(token));
  tokens.insert(tokens.end(), static_cast<size_t>(eos), eos_tok_);
  return tokens;
}

Result<std::string> CompiledTokenizer::decode(uint64_t prev_token, uint64_t token,
                                              bool skip_special_tokens) const {
  TK_CHECK_OK_OR_RETURN_ERROR(check(token));
  const auto number = static_cast<int32_t>(token);
  std::string text;
  if (skip_special_tokens && impl_->tokenizer.is_special(number)) return text;
  bool at_start = impl_->has_bos && prev_token == bos_tok_;
  impl_->tokenizer.append_piece(number, &at_start, &text);
  return text;
}

Result<std::string> CompiledTokenizer::decode(const std::vector<uint64_t>& tokens,
                                              bool skip_special_tokens) const {
  if (!initialized_) return Error::Uninitialized;
  std::vector<int32_t> numbers;
  for (const uint64_t token : tokens) {
    TK_CHECK_OK_OR_RETURN_ERROR(check(token));
    numbers.push_back(static_cast<int32_t>(token));
  }
  return impl_->tokenizer.decode({numbers.data(), numbers.size()}, skip_special_tokens);
}

Result<uint64_t> Tiktoken::find(size_t index) const {
  TK_CHECK_OR_RETURN_ERROR(index < special_->size(), LoadFailure,
                           "there is no special token %zu among %zu", index, special_->size());
  return piece_to_id((*special_)[index]);
}

Error Tiktoken::load(const std::string& tokenizer_path) {
  TK_CHECK_OK_OR_RETURN_ERROR(CompiledTokenizer::load(tokenizer_path));
  if (special_ == nullptr) return Error::Ok;
  const Result<uint64_t> bos = find(bos_), eos = find(eos_);
  initialized_ = bos.ok() && eos.ok();
  if (!initialized_) return Error::LoadFailure;
  set_bos(bos.get());
  set_eos(eos.get());
  return Error::Ok;
}

}  // namespace tokenizers
