// Chat templates: the text of a prompt from a conversation, as `transformers` renders it with
// Jinja.
//
// What is supported is what chat templates use (docs/llm/template.md); anything else is refused
// when the template is parsed, or where it is reached. A template is parsed once and can be
// rendered by several threads at a time. Neither a template nor its variables are trusted: a run is
// bounded in work, output and depth.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/llm/json/value.h"
#include "rushlight/llm/template/values/run_context.h"
#include "rushlight/llm/template/values/text.h"

namespace rushlight::llm {

struct Syntax;

struct RenderOptions {
  // Variables that the caller vouches for, such as {"bos_token": "<s>"}: an object.
  const JsonValue* tokens = nullptr;
  int64_t now = -1;  // for strftime_now: seconds since 1970 in local time; -1: the clock
  TemplateLimits limits;
};

struct Rendered {
  std::string text;
  // The bytes that came from the variables. Only what is outside of them may be read as special
  // tokens: a message that contains "<|im_end|>" does not end.
  std::vector<TextRange> data;
};

class ChatTemplate {
 public:
  ChatTemplate() = default;

  static Result<ChatTemplate> parse(StringView source, Message* message);

  // `variables` is an object: "messages", "tools", "add_generation_prompt" and the like.
  Status render(const JsonValue& variables, const RenderOptions& options, Rendered* out,
                Message* message) const;
  Status render(const JsonValue& variables, std::string* out, Message* message) const;

  // Whether the template reads a variable of this name from its caller, such as "tools" or
  // "enable_thinking".
  bool uses(StringView name) const;
  // All of them, in the order in which they come.
  std::vector<StringView> inputs() const;

 private:
  Status render_object(const JsonValue& variables, const RenderOptions& options, Rendered* out,
                       Message* message) const;

  std::shared_ptr<const Syntax> syntax_;
};

}  // namespace rushlight::llm
