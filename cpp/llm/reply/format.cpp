#include "rushlight/llm/reply/format.h"

#include <string>

#include "rushlight/llm/reply/reply.h"

namespace rushlight::llm {
namespace {

constexpr CallWriting kNotWritten = {{}, "", "", false, ""};

constexpr ReplyFormat kFormats[] = {
    // DeepSeek. Its markers have the full-width bar and the lower one eighth block.
    {"deepseek",
     "<｜tool▁call▁begin｜>",
     {"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>", CallBody::Named},
     {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
     false,
     kNotWritten},
    {"mistral",
     "[TOOL_CALLS]",
     {"[TOOL_CALLS]", "", "[ARGS]", CallBody::Named},
     {"", ""},
     false,
     {{"mistral"}, "", "", true, "arguments"}},
    // Phi-4-mini.
    {"phi",
     "<|tool_call|>",
     {"<|tool_call|>", "<|/tool_call|>", "", CallBody::Json},
     {"", ""},
     false,
     {{"phi4"}, "", "", true, "arguments"}},
    // Qwen, Hermes, SmolLM3 and others.
    {"hermes",
     "<tool_call>",
     {"<tool_call>", "</tool_call>", "", CallBody::Json},
     {"", ""},
     false,
     {{"qwen2", "qwen3", "smollm3"}, "\n", "\n", false, "arguments"}},
    // Llama 3.1 and later.
    {"llama",
     "<|python_tag|>",
     {"<|python_tag|>", "", "", CallBody::Code},
     {"", ""},
     true,
     {{"llama"}, "", "; ", false, "parameters"}},
    // Gemma and others, which are told to answer with JSON.
    {"json", "", {"```tool_code", "```", "", CallBody::Code}, {"", ""}, true, kNotWritten},
};

bool has(StringView text, const char* part) {
  return std::string(text.data(), text.size()).find(part) != std::string::npos;
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
  for (const ReplyFormat& format : kFormats) {
    if (has(chat_template, format.hint)) return format;
  }
  return kFormats[0];  // not reached: the last hint is empty
}

bool opens_reasoning(StringView prompt) {
  const std::string text(prompt.data(), prompt.size());
  const size_t last = text.find_last_not_of(" \n\t");
  const size_t size = std::string(kReasoningBegin).size();
  return last != std::string::npos && last + 1 >= size &&
         text.compare(last + 1 - size, size, kReasoningBegin) == 0;
}

}  // namespace rushlight::llm
