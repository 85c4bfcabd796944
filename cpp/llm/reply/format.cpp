#include "rushlight/llm/reply/format.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace rushlight::llm {
namespace {

constexpr CallWriting kNotWritten = {{}, "", "", false, ""};

constexpr ReplyFormat kFormats[] = {
    // DeepSeek. Its markers have the full-width bar and the lower one eighth block.
    {"deepseek",
     {"<｜tool▁call▁begin｜>"},
     {"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>", CallBody::Named},
     {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
     false,
     kNotWritten},
    {"mistral",
     {"[TOOL_CALLS]"},
     {"[TOOL_CALLS]", "", "[ARGS]", CallBody::Named, "[CALL_ID]"},
     {"", ""},
     false,
     {{"mistral"}, "", "", true, "arguments"}},
    // Phi-4-mini, and Granite 3, which writes no marker at the end.
    {"phi",
     {"<|tool_call|>", "<|/tool|>"},
     {"<|tool_call|>", "<|/tool_call|>", "", CallBody::Json},
     {"", ""},
     false,
     {{"phi4"}, "", "", true, "arguments"}},
    // Command R7B and later.
    {"command",
     {"<|START_ACTION|>"},
     {"<|START_ACTION|>", "<|END_ACTION|>", "", CallBody::Json},
     {"", ""},
     false,
     kNotWritten,
     {"<|START_THINKING|>", "<|END_THINKING|>"},
     {"<|START_RESPONSE|>", "<|END_RESPONSE|>"}},
    // Command R.
    {"action",
     {"Action: ```json"},
     {"Action: ```json", "```", "", CallBody::Json},
     {"", ""},
     false,
     kNotWritten},
    // Qwen, Hermes, SmolLM3 and others.
    {"hermes",
     {"<tool_call>"},
     {"<tool_call>", "</tool_call>", "", CallBody::Json},
     {"", ""},
     false,
     {{"qwen2", "qwen3", "smollm3"}, "\n", "\n", false, "arguments"}},
    // Llama 3.1 and later.
    {"llama",
     {"<|python_tag|>", "Environment: ipython"},
     {"<|python_tag|>", "", "", CallBody::Code},
     {"", ""},
     true,
     {{"llama"}, "", "; ", false, "parameters"}},
    // Gemma and others, which are told to answer with JSON.
    {"json", {}, {"```tool_code", "```", "", CallBody::Code}, {"", ""}, true, kNotWritten},
};

bool has(const std::string& text, const char* part) {
  return part != nullptr && text.find(part) != std::string::npos;
}

}  // namespace

Span<const ReplyFormat> reply_formats() { return kFormats; }

const ReplyFormat* find_reply_format(StringView name) {
  for (const ReplyFormat& format : kFormats) {
    if (name == format.name) return &format;
  }
  return nullptr;
}

const ReplyFormat& reply_format_of(StringView chat_template) {
  const std::string text(chat_template.data(), chat_template.size());
  for (const ReplyFormat& format : kFormats) {
    if (has(text, format.hints[0]) || has(text, format.hints[1])) return format;
  }
  return kFormats[std::size(kFormats) - 1];
}

bool opens_reasoning(StringView prompt) {
  std::string text(prompt.data(), prompt.size());
  text.resize(text.find_last_not_of(" \n\t") + 1);
  const auto opens = [&](const ReplyFormat& format) {
    const std::string marker = format.reasoning.begin;
    return text.size() >= marker.size() &&
           text.compare(text.size() - marker.size(), marker.size(), marker) == 0;
  };
  const Span<const ReplyFormat> formats = reply_formats();
  return std::any_of(formats.begin(), formats.end(), opens);
}

}  // namespace rushlight::llm
