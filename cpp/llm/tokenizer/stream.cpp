#include "rushlight/llm/tokenizer/stream.h"

#include "rushlight/llm/tokenizer/unicode/repair.h"

namespace rushlight::llm {

StringView TextStream::push(int32_t token) {
  text_.clear();
  if (skip_special_ && tokenizer_->is_special(token)) return {};
  tokenizer_->append_piece(token, &at_start_, &waiting_);
  const size_t read = append_repaired({waiting_.data(), waiting_.size()}, true, &text_);
  waiting_.erase(0, read);
  return {text_.data(), text_.size()};
}

StringView TextStream::flush() {
  text_.clear();
  append_repaired({waiting_.data(), waiting_.size()}, false, &text_);
  waiting_.clear();
  return {text_.data(), text_.size()};
}

void TextStream::reset() {
  waiting_.clear();
  at_start_ = true;
}

}  // namespace rushlight::llm
