#include "rushlight/llm/template/chat_template.h"

#include <algorithm>
#include <utility>

#include "rushlight/llm/memory/guard.h"
#include "rushlight/llm/template/builtins/tables.h"
#include "rushlight/llm/template/run/interpreter.h"
#include "rushlight/llm/template/syntax/parser.h"
#include "rushlight/llm/template/values/print.h"
#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm {
namespace {

constexpr size_t kMostSource = size_t{1} << 20;

Status check_source(StringView source, Message* message) {
  if (source.size() > kMostSource) {
    return message->fail(Code::InvalidArgument,
                         "the chat template has %zu bytes; at most %zu are "
                         "read",
                         source.size(), kMostSource);
  }
  for (size_t at = 0; at < source.size();) {
    const Character character = read_utf8(source.data() + at, source.size() - at);
    if (!character.valid) {
      return message->fail(Code::InvalidArgument,
                           "the chat template is not valid UTF-8 at byte %zu", at);
    }
    at += character.bytes;
  }
  return Code::Ok;
}

// Reasoning under all the names that templates have for it, as `transformers` adds them.
void add_reasoning(JsonValue* message) {
  const JsonValue* reasoning = nullptr;
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const JsonValue* text = message->find(name);
    if (reasoning == nullptr && text != nullptr && !text->is_null()) reasoning = text;
  }
  if (reasoning == nullptr) return;
  const JsonValue text = *reasoning;
  if (message->find("thinking") == nullptr) {
    std::vector<JsonMember> members = {{"thinking", text}};
    members.insert(members.end(), message->members().begin(), message->members().end());
    *message = JsonValue::object(std::move(members));
  }
  message->set("reasoning_content", text);
}

// The messages with their reasoning, if some have one.
bool with_reasoning(const JsonValue& messages, JsonValue* out) {
  const auto reasons = [](const JsonValue& message) {
    return message.find("reasoning_content") != nullptr || message.find("thinking") != nullptr ||
           message.find("reasoning") != nullptr;
  };
  if (std::none_of(messages.items().begin(), messages.items().end(), reasons)) return false;
  std::vector<JsonValue> items = messages.items();
  for (JsonValue& item : items) add_reasoning(&item);
  *out = JsonValue::array(std::move(items));
  return true;
}

Status set_variables(RunContext& run, const Syntax& syntax, const JsonValue& json, bool is_data,
                     std::vector<Value>* variables) {
  for (const JsonMember& member : json.members()) {
    const auto name = std::find(syntax.names.begin(), syntax.names.end(), member.key);
    if (name == syntax.names.end()) continue;
    JsonValue messages;
    const bool changed = member.key == "messages" && with_reasoning(member.value, &messages);
    RL_TRY(from_json(run, changed ? messages : member.value, is_data,
                     &(*variables)[static_cast<size_t>(name - syntax.names.begin())]));
  }
  return Code::Ok;
}

}  // namespace

Result<ChatTemplate> ChatTemplate::parse(StringView source, Message* message) {
  return guard("read the chat template", message, [&]() -> Result<ChatTemplate> {
    RL_TRY(check_source(source, message));
    std::vector<Token> tokens;
    RL_TRY(read_tokens(source, &tokens, message));
    auto syntax = std::make_shared<Syntax>();
    RL_TRY(Parser(std::move(tokens), syntax.get(), message).parse());
    ChatTemplate result;
    result.syntax_ = std::move(syntax);
    return result;
  });
}

Status ChatTemplate::render(const JsonValue& variables, const RenderOptions& options, Rendered* out,
                            Message* message) const {
  if (syntax_ == nullptr) {
    return message->fail(Code::InvalidState, "the chat template was not parsed");
  }
  if (!variables.is_object()) {
    return message->fail(Code::InvalidArgument,
                         "the variables of a chat template are %s; an "
                         "object is needed",
                         kind_name(variables.kind()));
  }
  return guard("render the chat template", message,
               [&] { return render_object(variables, options, out, message); });
}

Status ChatTemplate::render_object(const JsonValue& variables, const RenderOptions& options,
                                   Rendered* out, Message* message) const {
  RunContext run(options.limits, message);
  run.now = options.now;
  std::vector<Value> values;
  for (const std::string& name : syntax_->names) {
    const Function* function = find_function({name.data(), name.size()});
    values.push_back(function != nullptr ? Value::function(function) : Value::missing());
  }
  if (options.tokens != nullptr) {
    RL_TRY(set_variables(run, *syntax_, *options.tokens, false, &values));
  }
  RL_TRY(set_variables(run, *syntax_, variables, true, &values));
  for (const uint32_t name : syntax_->hidden) values[name] = Value::missing();
  Text text;
  RL_TRY(Interpreter(*syntax_, std::move(values), run).run(&text));
  out->data = text.data();
  out->text = text.take_bytes();
  return Code::Ok;
}

Status ChatTemplate::render(const JsonValue& variables, std::string* out, Message* message) const {
  Rendered rendered;
  RL_TRY(render(variables, {}, &rendered, message));
  *out = std::move(rendered.text);
  return Code::Ok;
}

std::vector<StringView> ChatTemplate::inputs() const {
  std::vector<StringView> inputs;
  if (syntax_ == nullptr) return inputs;
  for (const uint32_t number : syntax_->inputs) {
    const std::string& name = syntax_->names[number];
    const StringView view(name.data(), name.size());
    if (find_function(view) == nullptr) inputs.push_back(view);
  }
  return inputs;
}

bool ChatTemplate::uses(StringView name) const {
  const std::vector<StringView> all = inputs();
  return std::find(all.begin(), all.end(), name) != all.end();
}

}  // namespace rushlight::llm
