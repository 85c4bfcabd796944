#include <utility>

#include "rushlight/llm/template/builtins/access.h"
#include "rushlight/llm/template/builtins/tables.h"
#include "rushlight/llm/template/run/interpreter.h"
#include "rushlight/llm/template/values/operators.h"
#include "rushlight/llm/template/values/print.h"

namespace rushlight::llm {

Status Interpreter::evaluate(const Node& node, Value* out) {
  if (node.kind == NodeKind::Constant) {
    *out = node.constant;
    return run_.charge(1);
  }
  const Depth depth(this);
  RL_TRY(depth.check());
  return evaluate_by_kind(node, out);
}

Status Interpreter::evaluate_by_kind(const Node& node, Value* out) {
  switch (node.kind) {
    case NodeKind::Name:
      return evaluate_name(node, out);
    case NodeKind::List:
    case NodeKind::Tuple:
      return evaluate_items(node, out);
    case NodeKind::Dict:
      return evaluate_dict(node, out);
    case NodeKind::Attribute:
      return evaluate_attribute(node, out);
    case NodeKind::Item:
      return evaluate_item(node, out);
    case NodeKind::Call:
      return evaluate_call(node, Value::missing(), out);
    case NodeKind::Filter:
      return evaluate_filter(node, Value(), out);
    case NodeKind::Test:
      return evaluate_test(node, out);
    case NodeKind::Not:
    case NodeKind::Negate:
    case NodeKind::Plus:
      return evaluate_sign(node, out);
    case NodeKind::And:
    case NodeKind::Or:
      return evaluate_choice(node, out);
    case NodeKind::Arithmetic:
      return evaluate_arithmetic(node, out);
    case NodeKind::Compare:
      return evaluate_comparison(node, out);
    case NodeKind::Concat:
      return evaluate_concat(node, out);
    case NodeKind::Conditional:
      return evaluate_conditional(node, out);
    default:
      return run_.fail("a slice can only stand in '[]'");
  }
}

bool Interpreter::find_variable(uint32_t name, Value* out) const {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    for (const auto& [other, value] : scope->variables) {
      if (other != name) continue;
      *out = value;
      return true;
    }
  }
  *out = variables_[name];
  return !out->is(Kind::Missing);
}

Status Interpreter::evaluate_name(const Node& node, Value* out) {
  if (!find_variable(node.name, out)) *out = Value::undefined(node.why.c_str());
  return Code::Ok;
}

Status Interpreter::evaluate_items(const Node& node, Value* out) {
  std::vector<Value> items(node.children.size());
  for (size_t i = 0; i < items.size(); ++i) RL_TRY(evaluate(*node.children[i], &items[i]));
  const Kind kind = node.kind == NodeKind::List ? Kind::List : Kind::Tuple;
  return run_.make_items(kind, std::move(items), out);
}

Status Interpreter::evaluate_dict(const Node& node, Value* out) {
  DictObject made;
  for (size_t i = 0; i < node.children.size(); i += 2) {
    Value key, value;
    RL_TRY(evaluate(*node.children[i], &key));
    RL_TRY(evaluate(*node.children[i + 1], &value));
    if (!can_be_key(key)) return run_.fail("a %s cannot be a key of a dict", type_name(key));
    RL_TRY(run_.charge(1 + made.entries.size() / 8));
    made.set(key, std::move(value));
  }
  return run_.make_dict(std::move(made.entries), out);
}

Status Interpreter::evaluate_attribute(const Node& node, Value* out) {
  Value value;
  RL_TRY(evaluate(*node.children[0], &value));
  run_.line = node.line;
  return get_attribute(run_, value, node.text, node.why.c_str(), out);
}

Status Interpreter::evaluate_item(const Node& node, Value* out) {
  Value value, key;
  RL_TRY(evaluate(*node.children[0], &value));
  const Node& index = *node.children[1];
  if (index.kind != NodeKind::Slice) {
    RL_TRY(evaluate(index, &key));
    run_.line = node.line;
    return get_item(run_, value, key, node.why.c_str(), out);
  }
  Value parts[3] = {Value::missing(), Value::missing(), Value::missing()};
  for (size_t i = 0; i < 3; ++i) {
    if (index.children[i] != nullptr) RL_TRY(evaluate(*index.children[i], &parts[i]));
  }
  run_.line = node.line;
  return get_slice(run_, value, parts, out);
}

Status Interpreter::evaluate_arguments(const Node& node, Arguments* arguments) {
  arguments->values.resize(node.children.size() - 1);
  for (size_t i = 1; i < node.children.size(); ++i) {
    RL_TRY(evaluate(*node.children[i], &arguments->values[i - 1]));
  }
  for (const auto& [name, value] : node.keywords) {
    arguments->named.emplace_back(name, Value());
    RL_TRY(evaluate(*value, &arguments->named.back().second));
  }
  return Code::Ok;
}

// `block` is the value of a filter that stands in a block, and so has none of its own.
Status Interpreter::evaluate_filter(const Node& node, const Value& block, Value* out) {
  Value value = block;
  const Node* child = node.children[0].get();
  if (child != nullptr && child->kind == NodeKind::Filter) {
    const Depth depth(this);
    RL_TRY(depth.check());
    RL_TRY(evaluate_filter(*child, block, &value));
  } else if (child != nullptr) {
    RL_TRY(evaluate(*child, &value));
  }
  Arguments arguments;
  RL_TRY(evaluate_arguments(node, &arguments));
  run_.line = node.line;
  return node.filter->apply(run_, value, arguments, out);
}

Status Interpreter::evaluate_test(const Node& node, Value* out) {
  Value value;
  RL_TRY(evaluate(*node.children[0], &value));
  Arguments arguments;
  RL_TRY(evaluate_arguments(node, &arguments));
  run_.line = node.line;
  bool holds = false;
  RL_TRY(node.test->check(run_, value, arguments, &holds));
  *out = Value::boolean(holds);
  return Code::Ok;
}

Status Interpreter::evaluate_sign(const Node& node, Value* out) {
  Value value;
  RL_TRY(evaluate(*node.children[0], &value));
  if (node.kind == NodeKind::Not) {
    *out = Value::boolean(!is_true(value));
    return Code::Ok;
  }
  run_.line = node.line;
  Value negative;
  RL_TRY(negated(run_, value, &negative));
  if (node.kind == NodeKind::Negate) {
    *out = std::move(negative);
    return Code::Ok;
  }
  *out = value.is(Kind::Boolean) ? Value::integer(value.integer()) : value;
  return Code::Ok;
}

Status Interpreter::evaluate_choice(const Node& node, Value* out) {
  RL_TRY(evaluate(*node.children[0], out));
  if (is_true(*out) == (node.kind == NodeKind::Or)) return Code::Ok;
  return evaluate(*node.children[1], out);
}

Status Interpreter::evaluate_arithmetic(const Node& node, Value* out) {
  Value a, b;
  RL_TRY(evaluate(*node.children[0], &a));
  RL_TRY(evaluate(*node.children[1], &b));
  run_.line = node.line;
  return arithmetic(run_, node.arithmetic, a, b, out);
}

Status Interpreter::compare(Comparison comparison, const Value& a, const Value& b, bool* holds) {
  if (comparison == Comparison::Equal || comparison == Comparison::NotEqual) {
    RL_TRY(check_equal(run_, a, b, holds));
    if (comparison == Comparison::NotEqual) *holds = !*holds;
    return Code::Ok;
  }
  if (comparison == Comparison::In || comparison == Comparison::NotIn) {
    RL_TRY(contains(run_, b, a, holds));
    if (comparison == Comparison::NotIn) *holds = !*holds;
    return Code::Ok;
  }
  Order order = Order::None;
  RL_TRY(order_of(run_, a, b, &order));
  const bool less = comparison == Comparison::Less || comparison == Comparison::LessEqual;
  const bool or_equal =
      comparison == Comparison::LessEqual || comparison == Comparison::GreaterEqual;
  *holds = order == (less ? Order::Less : Order::Greater) || (or_equal && order == Order::Equal);
  return Code::Ok;
}

Status Interpreter::evaluate_comparison(const Node& node, Value* out) {
  Value left;
  RL_TRY(evaluate(*node.children[0], &left));
  bool holds = true;
  for (size_t i = 0; holds && i < node.comparisons.size(); ++i) {
    Value right;
    RL_TRY(evaluate(*node.children[i + 1], &right));
    run_.line = node.line;
    RL_TRY(compare(node.comparisons[i], left, right, &holds));
    left = std::move(right);
  }
  *out = Value::boolean(holds);
  return Code::Ok;
}

Status Interpreter::evaluate_concat(const Node& node, Value* out) {
  Text text;
  for (const NodePtr& child : node.children) {
    Value value;
    RL_TRY(evaluate(*child, &value));
    run_.line = node.line;
    if (value.is(Kind::String)) {
      RL_TRY(run_.append(value.text(), &text));
      continue;
    }
    Text part;
    RL_TRY(to_text(run_, value, &part));
    RL_TRY(run_.append(part, &text));
  }
  return run_.make_text(std::move(text), out);
}

Status Interpreter::evaluate_conditional(const Node& node, Value* out) {
  Value condition;
  RL_TRY(evaluate(*node.children[0], &condition));
  if (is_true(condition)) return evaluate(*node.children[1], out);
  if (node.children[2] != nullptr) return evaluate(*node.children[2], out);
  *out = Value::undefined(node.why.c_str());
  return Code::Ok;
}

}  // namespace rushlight::llm
