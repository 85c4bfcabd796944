#include "rushlight/llm/session/text_codec.h"

#include <cstring>
#include <string_view>

namespace rushlight::llm {

Status TokenizerCodec::open(Span<const uint8_t> table, Message* message) {
  if (reinterpret_cast<uintptr_t>(table.data()) % sizeof(uint64_t) != 0) {
    copy_.resize(table.size() / sizeof(uint64_t) + 1);
    std::memcpy(copy_.data(), table.data(), table.size());
    table = {reinterpret_cast<const uint8_t*>(copy_.data()), table.size()};
  }
  Result<Tokenizer> tokenizer = Tokenizer::open(table, message);
  if (tokenizer.ok()) tokenizer_ = tokenizer.value();
  return tokenizer.status();
}

int32_t TokenizerCodec::special(StringView text) const {
  const int32_t token = tokenizer_.special(text);
  return tokenizer_.is_special(token) ? token : -1;
}

namespace {

// The longest token that `bytes` begin with, or -1.
int32_t longest_beginning(const TextCodec& codec, std::string_view bytes) {
  int32_t longest = -1;
  size_t size = 0;
  for (size_t i = 0; i < codec.vocabulary(); ++i) {
    const auto token = static_cast<int32_t>(i);
    const StringView piece = codec.piece(token);
    if (piece.size() <= size || codec.is_special(token)) continue;
    if (bytes.substr(0, piece.size()) != std::string_view(piece.data(), piece.size())) continue;
    longest = token;
    size = piece.size();
  }
  return longest;
}

}  // namespace

bool encode_exactly(const TextCodec& codec, StringView bytes, std::vector<int32_t>* tokens) {
  const size_t before = tokens->size();
  const std::string_view wanted(bytes.data(), bytes.size());
  Message unused;
  std::string written;
  if (codec.encode(bytes, false, false, tokens, &unused).ok()) {
    for (size_t i = before; i < tokens->size(); ++i) {
      const StringView piece = codec.piece((*tokens)[i]);
      written.append(piece.data(), piece.size());
    }
    if (written == wanted) return true;
  }
  tokens->resize(before);
  for (size_t at = 0; at < wanted.size();) {
    const int32_t token = longest_beginning(codec, wanted.substr(at));
    if (token < 0) {
      tokens->resize(before);
      return false;
    }
    tokens->push_back(token);
    at += codec.piece(token).size();
  }
  return true;
}

std::vector<int32_t> tokens_with(const TextCodec& codec, StringView text) {
  std::vector<int32_t> tokens;
  const std::string_view wanted(text.data(), text.size());
  for (size_t i = 0; i < codec.vocabulary(); ++i) {
    const auto token = static_cast<int32_t>(i);
    if (codec.is_special(token)) continue;
    const StringView piece = codec.piece(token);
    const std::string_view own(piece.data(), piece.size());
    if (own.find(wanted) != std::string_view::npos) tokens.push_back(token);
  }
  return tokens;
}

}  // namespace rushlight::llm
