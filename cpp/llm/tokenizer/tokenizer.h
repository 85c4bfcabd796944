// Tokenizers of language models: text to tokens, and tokens to text, exactly as tokenizers,
// sentencepiece and tiktoken have them. A tokenizer is a table that was compiled at export
// (src/rushlight/llm/tokenizer) and is used where it lies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/llm/tokenizer/table.h"

namespace rushlight::llm {

// Copies share the table. Several threads may use one.
class Tokenizer {
 public:
  // A tokenizer over the memory of `table`, which must outlive it and begin at a multiple of 8
  // bytes.
  static Result<Tokenizer> open(Span<const uint8_t> table, Message* message);

  // Appends the tokens of `text` to `out`. Bytes that are not UTF-8 are read as U+FFFD, as Python's
  // decode(errors="replace") does. With `add_special`, those that surround every text (such as a
  // token for its beginning) are added; without `parse_special`, the text of a special token is
  // text like any other.
  Status encode(StringView text, bool add_special, bool parse_special, std::vector<int32_t>* out,
                Message* message) const;

  // The same for a text that is known to be UTF-8, such as Python's: it is not checked. Bytes that
  // are not would be read as some characters.
  Status encode_utf8(StringView text, bool add_special, bool parse_special,
                     std::vector<int32_t>* out, Message* message) const;

  // The bytes that a token adds to a text, if it is not the first one; of a special token, its
  // text. They need not be whole characters. Empty if there is no such token.
  StringView piece(int32_t token) const;

  // Appends the bytes that `token` adds. `at_start`: nothing was decoded before; set to false once
  // something was.
  void append_piece(int32_t token, bool* at_start, std::string* out) const;

  // The text of all tokens, with U+FFFD for bytes that are not UTF-8.
  std::string decode(Span<const int32_t> tokens, bool skip_special) const;

  bool is_special(int32_t token) const { return has(token) && is(token, kSpecialToken); }
  size_t vocabulary() const { return table_.settings.vocabulary; }

  // The added token of this text, or -1.
  int32_t special(StringView text) const;

 private:
  bool has(int32_t token) const {
    return token >= 0 && static_cast<uint32_t>(token) < table_.settings.vocabulary;
  }
  bool is(int32_t token, uint8_t kind) const {
    return (table_.kinds[static_cast<size_t>(token)] & kind) != 0;
  }

  Table table_;
  uint32_t identity_ = 0;  // of the table, for caches
};

}  // namespace rushlight::llm
