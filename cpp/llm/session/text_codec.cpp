#include "rushlight/llm/session/text_codec.h"

#include <cstring>

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

}  // namespace rushlight::llm
