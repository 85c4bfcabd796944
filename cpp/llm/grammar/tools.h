// Calls of tools as a model's family writes them: OpenAI's `tools` and `tool_choice` as a grammar.
#pragma once

#include <memory>
#include <string>

#include "rushlight/llm/grammar/grammar.h"

namespace rushlight::llm {

// A call is a JSON object with the tool's name and its arguments, between two markers. Special
// tokens in markers are named by their texts.
struct ToolFormat {
  std::string begin, end;
  std::string separator;  // between calls
  bool is_list = false;   // all calls are one JSON array between the markers
  std::string name = "name", arguments = "arguments";
};

// How a family of models writes calls; null for one that has no such form.
const ToolFormat* tool_format(StringView family);

// `tools`: [{"type": "function", "function": {"name", "parameters"}}, ...]. `choice`: "none",
// "auto" (text, then perhaps calls), "required", or {"type": "function", "function": {"name"}}.
// `parallel`: several calls may be made.
Result<std::shared_ptr<const Grammar>> grammar_from_tools(
    const JsonValue& tools, const JsonValue& choice, bool parallel, const ToolFormat& format,
    std::shared_ptr<const Vocabulary> vocabulary, const GrammarOptions& options, Message* message);

}  // namespace rushlight::llm
