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
