// Cuts the source of a template into tokens as Jinja does with trim_blocks and lstrip_blocks: a
// line break after a block is dropped, and so is white space between the start of a line and a
// block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"

namespace rushlight::llm {

enum class TokenType : uint8_t {
  Data,
  PrintBegin,
  PrintEnd,
  BlockBegin,
  BlockEnd,
  Name,
  String,
  Integer,
  Float,
  Operator,
  End,
};

struct Token {
  TokenType type = TokenType::End;
  uint32_t line = 1;
  std::string text;  // of data, names, strings (without quotes and escapes) and operators
  int64_t integer = 0;
  double number = 0;
};

// The last token is End. Errors name the line.
Status read_tokens(StringView source, std::vector<Token>* tokens, Message* message);

}  // namespace rushlight::llm
