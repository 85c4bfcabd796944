#include <cctype>
#include <utility>

#include "rushlight/llm/json/parse.h"
#include "rushlight/llm/json/write.h"
#include "rushlight/llm/reply/reply.h"

namespace rushlight::llm {
namespace {

// The arguments as the text of an object; false if they are none.
bool write_arguments(const JsonValue* arguments, std::string* out) {
  if (arguments == nullptr || arguments->is_null()) {
    *out = "{}";
    return true;
  }
  if (arguments->is_string()) {  // an object that was written as text
    Message message;
    const std::string& text = arguments->string();
    const Result<JsonValue> value = parse_json({text.data(), text.size()}, &message);
    *out = text;
    return value.ok() && value.value().is_object();
  }
  *out = write_json(*arguments);
  return arguments->is_object();
}

const JsonValue* either(const JsonValue& object, StringView key, StringView other) {
  const JsonValue* value = object.find(key);
  return value != nullptr ? value : object.find(other);
}

bool read_call(const JsonValue& value, ToolCall* call) {
  const JsonValue* function = value.find("function");
  const JsonValue& inner = function != nullptr && function->is_object() ? *function : value;
  const JsonValue* name = either(inner, "name", "tool_name");
  const JsonValue* id = either(value, "id", "tool_call_id");
  if (name == nullptr || !name->is_string() || name->string().empty()) return false;
  call->name = name->string();
  if (id != nullptr && id->is_string()) call->id = id->string();
  const JsonValue* arguments = either(inner, "arguments", "parameters");
  if (arguments == nullptr && &inner == &value && value.members().size() > 1) return false;
  return write_arguments(arguments, &call->arguments);
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// `key="value", …)`, the values in JSON; false if it is anything else.
bool read_named_arguments(const std::string& text, JsonValue* arguments) {
  size_t at = 0;
  *arguments = JsonValue::object();
  while (true) {
    while (at < text.size() && (text[at] == ' ' || text[at] == ',')) ++at;
    if (at < text.size() && text[at] == ')') {
      return text.find_first_not_of(" \n\t", at + 1) == std::string::npos;
    }
    const size_t start = at;
    while (at < text.size() && is_name(text[at])) ++at;
    const std::string key = text.substr(start, at - start);
    if (key.empty() || at == text.size() || text[at] != '=') return false;
    const size_t begin = ++at;
    bool quoted = false;
    for (; at < text.size() && (quoted || (text[at] != ',' && text[at] != ')')); ++at) {
      if (text[at] == '"') quoted = !quoted;
      if (quoted && text[at] == '\\') ++at;
    }
    if (at >= text.size()) return false;
    Message message;
    Result<JsonValue> value = parse_json({text.data() + begin, at - begin}, &message);
    if (!value.ok()) return false;
    arguments->set({key.data(), key.size()}, std::move(*value));
  }
}

std::string trimmed(StringView code) {
  const std::string text(code.data(), code.size());
  const size_t begin = text.find_first_not_of(" \n\t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \n\t\r") + 1 - begin);
}

}  // namespace

bool read_calls(const JsonValue& value, std::vector<ToolCall>* calls) {
  std::vector<ToolCall> read;
  if (value.is_object()) {
    read.emplace_back();
    if (!read_call(value, &read.back())) return false;
  }
  for (const JsonValue& item : value.items()) {
    read.emplace_back();
    if (!read_call(item, &read.back())) return false;
  }
  if (read.empty()) return false;
  for (ToolCall& call : read) calls->push_back(std::move(call));
  return true;
}

ToolCall read_code(StringView code) {
  const std::string text = trimmed(code);
  size_t end = 0;
  while (end < text.size() && is_name(text[end])) ++end;
  const std::string mark = ".call(";
  const bool is_method = end > 0 && text.compare(end, mark.size(), mark) == 0;
  const bool is_function = end > 0 && end < text.size() && text[end] == '(';
  JsonValue arguments;
  if ((is_method || is_function) &&
      read_named_arguments(text.substr(end + (is_method ? mark.size() : 1)), &arguments)) {
    return {"", text.substr(0, end), write_json(arguments)};
  }
  arguments = JsonValue::object();
  arguments.set("code", JsonValue(text));
  return {"", "python", write_json(arguments)};
}

}  // namespace rushlight::llm
