#include <utility>

#include "rushlight/llm/template/run/interpreter.h"
#include "rushlight/llm/template/values/operators.h"
#include "rushlight/llm/template/values/print.h"

namespace rushlight::llm {

Status Interpreter::run(Text* out) {
  out_ = out;
  return execute(syntax_.body);
}

Status Interpreter::execute(const Nodes& body) {
  const Depth depth(this);
  RL_TRY(depth.check());
  for (const NodePtr& node : body) {
    RL_TRY(execute_one(*node));
    if (jump_ != Jump::None) break;
  }
  return Code::Ok;
}

Status Interpreter::execute_one(const Node& node) {
  run_.line = node.line;
  Value value;
  switch (node.kind) {
    case NodeKind::Data:
      return run_.append(StringView(node.text.data(), node.text.size()), out_);
    case NodeKind::Print:
      return execute_print(node);
    case NodeKind::If:
      RL_TRY(evaluate(*node.children[0], &value));
      return execute(is_true(value) ? node.body : node.otherwise);
    case NodeKind::For:
      return execute_for(node);
    case NodeKind::Set:
      RL_TRY(evaluate(*node.children[1], &value));
      return assign(*node.children[0], value);
    case NodeKind::SetBlock:
      return execute_set_block(node);
    case NodeKind::With:
      return execute_with(node);
    case NodeKind::FilterBlock:
      return execute_filter_block(node);
    case NodeKind::Macro:
      set_variable(node.name, make_macro(node));
      return run_.charge(1);
    case NodeKind::CallBlock:
      return execute_call_block(node);
    case NodeKind::Generation:
      return execute_scoped(node.body);
    case NodeKind::Break:
      jump_ = Jump::Break;
      return Code::Ok;
    default:
      jump_ = Jump::Continue;
      return Code::Ok;
  }
}

Status Interpreter::print(const Value& value) {
  if (value.is(Kind::String)) return run_.append(value.text(), out_);
  Text text;
  RL_TRY(to_text(run_, value, &text));
  return run_.append(text, out_);
}

Status Interpreter::execute_print(const Node& node) {
  Value value;
  RL_TRY(evaluate(*node.children[0], &value));
  run_.line = node.line;
  return print(value);
}

Status Interpreter::execute_scoped(const Nodes& body) {
  const InnerScope scope(this, scope_);
  return execute(body);
}

Status Interpreter::execute_for(const Node& node) {
  Value value;
  RL_TRY(evaluate(*node.children[1], &value));
  run_.line = node.line;
  Ref<ListObject> items;
  RL_TRY(items_of(run_, value, &items));
  if (node.children[2] != nullptr) {
    Ref<ListObject> chosen;
    RL_TRY(chosen_items(node, *items, &chosen));
    items = chosen;
  }
  if (items->items.empty()) return execute_scoped(node.otherwise);
  return loop_over(node, items);
}

// The items for which the loop's condition holds.
Status Interpreter::chosen_items(const Node& node, const ListObject& items,
                                 Ref<ListObject>* chosen) {
  std::vector<Value> kept;
  for (const Value& item : items.items) {
    const InnerScope scope(this, scope_);
    RL_TRY(assign(*node.children[0], item));
    Value condition;
    RL_TRY(evaluate(*node.children[2], &condition));
    if (is_true(condition)) kept.push_back(item);
  }
  Value list;
  RL_TRY(run_.make_items(Kind::List, std::move(kept), &list));
  *chosen = Ref<ListObject>(&list.as<ListObject>());
  return Code::Ok;
}

Status Interpreter::loop_over(const Node& node, const Ref<ListObject>& items) {
  Ref<LoopObject> loop = make_ref<LoopObject>();
  loop->items = items;
  loop->depth = items->depth + 1;
  loop->weight = items->weight + 1;
  const Value loop_value = Value::object(Kind::Loop, loop);
  const Ref<Scope> outer = scope_;
  const InnerScope scope(this, outer);
  for (size_t i = 0; i < items->items.size(); ++i) {
    loop->index = i;
    // Variables live for one iteration; a macro may have kept the scope of the one before.
    if (scope_->references.load() == 1) {
      scope_->variables.clear();
    } else {
      scope_ = make_ref<Scope>();
      scope_->parent = outer;
    }
    scope_->set(kLoop, loop_value);
    RL_TRY(assign(*node.children[0], items->items[i]));
    RL_TRY(execute(node.body));
    if (std::exchange(jump_, Jump::None) == Jump::Break) break;
  }
  return Code::Ok;
}

Status Interpreter::capture(const Nodes& body, Text* out) {
  Text* const before = std::exchange(out_, out);
  const Status status = execute_scoped(body);
  out_ = before;
  return status;
}

Status Interpreter::execute_set_block(const Node& node) {
  Text text;
  RL_TRY(capture(node.body, &text));
  Value value;
  RL_TRY(run_.make_text(std::move(text), &value));
  if (node.children[1] != nullptr) {
    const Value block = value;
    RL_TRY(evaluate_filter(*node.children[1], block, &value));
  }
  return assign(*node.children[0], value);
}

Status Interpreter::execute_filter_block(const Node& node) {
  Text text;
  RL_TRY(capture(node.body, &text));
  Value block, value;
  RL_TRY(run_.make_text(std::move(text), &block));
  RL_TRY(evaluate_filter(*node.children[0], block, &value));
  return print(value);
}

// The values see the variables outside of the block.
Status Interpreter::execute_with(const Node& node) {
  std::vector<Value> values(node.children.size() / 2);
  for (size_t i = 0; i < values.size(); ++i) {
    RL_TRY(evaluate(*node.children[2 * i + 1], &values[i]));
  }
  const InnerScope scope(this, scope_);
  for (size_t i = 0; i < values.size(); ++i) RL_TRY(assign(*node.children[2 * i], values[i]));
  return execute(node.body);
}

Status Interpreter::execute_call_block(const Node& node) {
  Value result;
  RL_TRY(evaluate_call(*node.children[0], make_macro(node), &result));
  run_.line = node.line;
  return print(result);
}

void Interpreter::set_variable(uint32_t name, Value value) {
  if (scope_) {
    scope_->set(name, std::move(value));
  } else {
    variables_[name] = std::move(value);
  }
}

Status Interpreter::assign(const Node& target, const Value& value) {
  RL_TRY(run_.charge(1));
  if (target.kind == NodeKind::Name) {
    set_variable(target.name, value);
    return Code::Ok;
  }
  if (target.kind == NodeKind::NamespaceItem) return assign_to_namespace(target, value);
  run_.line = target.line;
  Ref<ListObject> items;
  if (value.is(Kind::Undefined)) return run_.fail_undefined(value);
  RL_TRY(items_of(run_, value, &items));
  if (items->items.size() != target.children.size()) {
    return run_.fail("%zu values cannot be given to %zu names", items->items.size(),
                     target.children.size());
  }
  for (size_t i = 0; i < target.children.size(); ++i) {
    RL_TRY(assign(*target.children[i], items->items[i]));
  }
  return Code::Ok;
}

Status Interpreter::assign_to_namespace(const Node& target, const Value& value) {
  run_.line = target.line;
  Value space;
  const bool is_set = find_variable(target.name, &space);
  if (!is_set || !space.is(Kind::Namespace)) {
    return run_.fail(
        "'%s' is no namespace, so that '%s.%s' cannot be set: begin with {%% set %s = "
        "namespace() %%}",
        syntax_.names[target.name].c_str(), syntax_.names[target.name].c_str(), target.text.c_str(),
        syntax_.names[target.name].c_str());
  }
  auto& dict = space.as<DictObject>();
  RL_TRY(run_.charge(dict.entries.size() / 8));
  dict.set(string_value({target.text.data(), target.text.size()}), value);
  return Code::Ok;
}

}  // namespace rushlight::llm
