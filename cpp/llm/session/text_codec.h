// What sessions ask of a tokenizer.
#pragma once

#include <cstdint>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"

namespace rushlight::llm {

class TextCodec {
 public:
  virtual ~TextCodec() = default;
  // Appends the tokens of a text. With `add_special` those that begin and end a text are added;
  // with `parse_special` the texts of special tokens become these tokens.
  virtual Status encode(StringView text, bool add_special, bool parse_special,
                        std::vector<int32_t>* tokens, Message* message) const = 0;
  // The bytes that a token adds; of a special token its text.
  virtual StringView piece(int32_t token) const = 0;
  virtual bool is_special(int32_t token) const = 0;
};

}  // namespace rushlight::llm
