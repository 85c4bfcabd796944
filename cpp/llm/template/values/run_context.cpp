#include "rushlight/llm/template/values/run_context.h"

#include <algorithm>
#include <cstdarg>

namespace rushlight::llm {

void Scope::set(uint32_t name, Value value) {
  for (auto& [other, old] : variables) {
    if (other != name) continue;
    old = std::move(value);
    return;
  }
  variables.emplace_back(name, std::move(value));
}

RunContext::~RunContext() {
  for (Ref<DictObject>& space : namespaces_) space->entries.clear();
  for (Ref<Scope>& scope : scopes_) scope->variables.clear();
  for (Ref<LoopObject>& loop : loops_) loop->before = Value();
}

Status RunContext::fail(const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  const Status status = message->vfail(Code::InvalidArgument, format, args);
  va_end(args);
  message->prepend("chat template, line %u: ", line);
  return status;
}

Status RunContext::fail_undefined(const Value& value) {
  return fail("%s", value.why() != nullptr ? value.why() : "the value is undefined");
}

Status RunContext::charge(size_t work) {
  work_ += work;
  if (work_ <= limits.work) return Code::Ok;
  return fail("the template does too much work: it may loop without end, or its input is too long");
}

Status RunContext::charge_bytes(size_t bytes) {
  if (bytes > limits.output) return fail("a text would have more than %zu bytes", limits.output);
  return charge(bytes / 16);
}

Status RunContext::check(Object& object, uint32_t depth, size_t weight) {
  if (depth > limits.depth) return fail("values nest deeper than %u", limits.depth);
  if (weight > limits.weight) return fail("a value would hold more than %u", limits.weight);
  object.depth = depth;
  object.weight = static_cast<uint32_t>(weight);
  return Code::Ok;
}

Status RunContext::charge_append(size_t bytes, const Text& text) {
  RL_TRY(charge(1 + bytes / 16));
  if (text.size() + bytes <= limits.output) return Code::Ok;
  return fail("a text would have more than %zu bytes", limits.output);
}

Status RunContext::append(const Text& part, Text* text) {
  RL_TRY(charge_append(part.size(), *text));
  text->append(part);
  return Code::Ok;
}

Status RunContext::append(StringView part, Text* text) {
  RL_TRY(charge_append(part.size(), *text));
  text->append_bytes(part);
  return Code::Ok;
}

Status RunContext::make_text(Text text, Value* out) {
  RL_TRY(charge_bytes(text.size()));
  *out = Value::string(std::move(text));
  return Code::Ok;
}

Status RunContext::make_items(Kind kind, std::vector<Value> items, Value* out, const char* view) {
  RL_TRY(charge(items.size()));
  Ref<ListObject> list = make_ref<ListObject>();
  uint32_t depth = 0;
  size_t weight = 1;
  for (const Value& item : items) {
    depth = std::max(depth, item.depth());
    weight += item.weight();
  }
  RL_TRY(check(*list, depth + 1, weight));
  list->items = std::move(items);
  list->view = view;
  *out = Value::object(kind, list);
  return Code::Ok;
}

Status RunContext::make_dict(std::vector<Entry> entries, Value* out) {
  RL_TRY(charge(entries.size()));
  Ref<DictObject> dict = make_ref<DictObject>();
  uint32_t depth = 0;
  size_t weight = 1;
  for (const Entry& entry : entries) {
    depth = std::max({depth, entry.first.depth(), entry.second.depth()});
    weight += entry.first.weight() + entry.second.weight();
  }
  RL_TRY(check(*dict, depth + 1, weight));
  dict->entries = std::move(entries);
  *out = Value::object(Kind::Dict, dict);
  return Code::Ok;
}

}  // namespace rushlight::llm
