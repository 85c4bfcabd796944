// From a conversation to tokens: the model's chat template, and its tokenizer. What messages say
// never becomes special tokens, even if it looks like them.
#pragma once

#include <vector>

#include "rushlight/llm/json/value.h"
#include "rushlight/llm/reply/format.h"
#include "rushlight/llm/session/text_codec.h"
#include "rushlight/llm/template/chat_template.h"

namespace rushlight::llm {

class Chat {
 public:
  // `tokens`: the texts of special tokens that templates name, such as {"bos_token": "<s>"}.
  Status open(StringView source, const JsonValue& tokens, const TextCodec* codec, Message* message);
  bool is_open() const { return codec_ != nullptr; }
  // Whether the template reads a variable of this name, such as "tools".
  bool uses(StringView name) const { return template_.uses(name); }
  // How the model writes reasoning and calls of tools, as its template shows. Only while open.
  const ReplyFormat& reply_format() const { return *reply_format_; }
  // Whether its template knows of reasoning.
  bool reasons() const { return reasons_; }

  // Appends the tokens of a conversation. `variables` has "messages", "add_generation_prompt" and
  // what else the template reads. Returns NotSupported for others, unless they are null.
  Status encode(const JsonValue& variables, std::vector<int32_t>* tokens, Message* message) const;

 private:
  Status check(const JsonValue& variables, Message* message) const;
  Status encode_parts(const Rendered& rendered, std::vector<int32_t>* tokens,
                      Message* message) const;

  ChatTemplate template_;
  JsonValue tokens_;
  const TextCodec* codec_ = nullptr;
  const ReplyFormat* reply_format_ = nullptr;
  bool reasons_ = false;
  std::vector<StringView> specials_;  // texts of special tokens
};

}  // namespace rushlight::llm
