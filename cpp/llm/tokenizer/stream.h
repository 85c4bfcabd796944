// Tokens that become text one by one: only whole characters are given out.
#pragma once

#include <string>

#include "rushlight/core/span.h"
#include "rushlight/llm/tokenizer/tokenizer.h"

namespace rushlight::llm {

class TextStream {
 public:
  // Keeps `tokenizer`, which must outlive it.
  explicit TextStream(const Tokenizer& tokenizer, bool skip_special = true)
      : tokenizer_(&tokenizer), skip_special_(skip_special) {}

  // The text that is complete with this token, until the next call. Bytes that cannot become a
  // character are U+FFFD.
  StringView push(int32_t token);
  // What is left: the start of a character that never came to its end is U+FFFD.
  StringView flush();
  // Begins a new text.
  void reset();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  bool at_start_ = true;
  std::string waiting_, text_;
};

}  // namespace rushlight::llm
