// What sessions ask of a tokenizer; of a program's own it is TokenizerCodec.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/llm/tokenizer/tokenizer.h"

namespace rushlight::llm {

class TextCodec {
 public:
  virtual ~TextCodec() = default;
  // Appends the tokens of a text. With `add_special` those that begin and end a text are added;
  // with `parse_special` the texts of special tokens become these tokens.
  virtual Status encode(StringView text, bool add_special, bool parse_special,
                        std::vector<int32_t>* tokens, Message* message) const = 0;
  // The whole text of tokens.
  virtual std::string decode(Span<const int32_t> tokens, bool skip_special) const = 0;
  // The bytes that a token adds to a text; of a special token its text.
  virtual StringView piece(int32_t token) const = 0;
  virtual bool is_special(int32_t token) const = 0;
  // The special token of this text, or -1.
  virtual int32_t special(StringView text) const = 0;
  virtual size_t vocabulary() const = 0;
};

class TokenizerCodec final : public TextCodec {
 public:
  // Uses the table where it lies, unless it does not begin at a multiple of 8 bytes.
  Status open(Span<const uint8_t> table, Message* message);
  Status encode(StringView text, bool add_special, bool parse_special, std::vector<int32_t>* tokens,
                Message* message) const override {
    return tokenizer_.encode(text, add_special, parse_special, tokens, message);
  }
  std::string decode(Span<const int32_t> tokens, bool skip_special) const override {
    return tokenizer_.decode(tokens, skip_special);
  }
  StringView piece(int32_t token) const override { return tokenizer_.piece(token); }
  bool is_special(int32_t token) const override { return tokenizer_.is_special(token); }
  int32_t special(StringView text) const override;
  size_t vocabulary() const override { return tokenizer_.vocabulary(); }

 private:
  Tokenizer tokenizer_;
  std::vector<uint64_t> copy_;  // of a table that is not aligned
};

// Appends tokens that add these bytes to a text, and no others: those of the tokenizer, unless it
// changes them (one puts a space before each text, say), or else the longest that there are. False
// if no tokens have them.
bool encode_exactly(const TextCodec& codec, StringView bytes, std::vector<int32_t>* tokens);

// The tokens whose text has `text` in it; special tokens have none.
std::vector<int32_t> tokens_with(const TextCodec& codec, StringView text);

}  // namespace rushlight::llm
