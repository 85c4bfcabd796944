#include <algorithm>
#include <string>
#include <utility>

#include "rushlight/llm/template/builtins/tables.h"
#include "rushlight/llm/template/syntax/parser.h"

namespace rushlight::llm {

Status Parser::expression(NodePtr* out) {
  const Nesting nesting(this);
  RL_TRY(nesting.check());
  RL_TRY(either(out));
  while (take_name("if")) {
    NodePtr condition, other;
    RL_TRY(either(&condition));
    if (take_name("else")) RL_TRY(expression(&other));
    RL_TRY(wrap(NodeKind::Conditional, &condition));
    NodePtr node = std::move(condition);
    node->why = "the condition is not true, and the expression has no 'else'";
    RL_TRY(add(node.get(), std::move(*out)));
    RL_TRY(add(node.get(), std::move(other)));
    *out = std::move(node);
  }
  return Code::Ok;
}

Status Parser::either(NodePtr* out) {
  RL_TRY(both(out));
  while (take_name("or")) {
    NodePtr right;
    RL_TRY(both(&right));
    RL_TRY(wrap(NodeKind::Or, out));
    RL_TRY(add(out->get(), std::move(right)));
  }
  return Code::Ok;
}

Status Parser::both(NodePtr* out) {
  RL_TRY(negation(out));
  while (take_name("and")) {
    NodePtr right;
    RL_TRY(negation(&right));
    RL_TRY(wrap(NodeKind::And, out));
    RL_TRY(add(out->get(), std::move(right)));
  }
  return Code::Ok;
}

Status Parser::negation(NodePtr* out) {
  size_t count = 0;
  while (take_name("not")) ++count;
  RL_TRY(comparison(out));
  for (; count > 0; --count) {
    NodePtr node = make(NodeKind::Not);
    RL_TRY(add(node.get(), std::move(*out)));
    *out = std::move(node);
  }
  return Code::Ok;
}

Status Parser::comparison(NodePtr* out) {
  constexpr std::pair<const char*, Comparison> kSigns[] = {
      {"==", Comparison::Equal},  {"!=", Comparison::NotEqual},
      {"<", Comparison::Less},    {"<=", Comparison::LessEqual},
      {">", Comparison::Greater}, {">=", Comparison::GreaterEqual}};
  RL_TRY(sum(out));
  NodePtr node;
  while (true) {
    Comparison comparison = Comparison::In;
    bool is_here = false;
    for (const auto& [sign, meaning] : kSigns) {
      if (is_here || !take_operator(sign)) continue;
      comparison = meaning;
      is_here = true;
    }
    if (!is_here && !take_name("in")) {
      const bool negated =
          is_name("not") && ahead().type == TokenType::Name && ahead().text == "in";
      if (!negated) break;
      at_ += 2;
      comparison = Comparison::NotIn;
    }
    NodePtr right;
    RL_TRY(sum(&right));
    if (node == nullptr) {
      RL_TRY(wrap(NodeKind::Compare, out));
      node = std::move(*out);
    }
    node->comparisons.push_back(comparison);
    RL_TRY(add(node.get(), std::move(right)));
  }
  if (node != nullptr) *out = std::move(node);
  return Code::Ok;
}

Status Parser::sum(NodePtr* out) {
  RL_TRY(concat(out));
  while (is_operator("+") || is_operator("-")) {
    const Arithmetic op = is_operator("+") ? Arithmetic::Add : Arithmetic::Subtract;
    ++at_;
    NodePtr right;
    RL_TRY(concat(&right));
    RL_TRY(wrap(NodeKind::Arithmetic, out));
    (*out)->arithmetic = op;
    RL_TRY(add(out->get(), std::move(right)));
  }
  return Code::Ok;
}

Status Parser::concat(NodePtr* out) {
  RL_TRY(product(out));
  if (!is_operator("~")) return Code::Ok;
  RL_TRY(wrap(NodeKind::Concat, out));
  while (take_operator("~")) {
    NodePtr right;
    RL_TRY(product(&right));
    RL_TRY(add(out->get(), std::move(right)));
  }
  return Code::Ok;
}

Status Parser::product(NodePtr* out) {
  constexpr std::pair<const char*, Arithmetic> kSigns[] = {{"*", Arithmetic::Multiply},
                                                           {"/", Arithmetic::Divide},
                                                           {"//", Arithmetic::FloorDivide},
                                                           {"%", Arithmetic::Modulo}};
  RL_TRY(power(out));
  while (true) {
    bool is_here = false;
    for (const auto& [sign, op] : kSigns) {
      if (!take_operator(sign)) continue;
      is_here = true;
      NodePtr right;
      RL_TRY(power(&right));
      RL_TRY(wrap(NodeKind::Arithmetic, out));
      (*out)->arithmetic = op;
      RL_TRY(add(out->get(), std::move(right)));
    }
    if (!is_here) return Code::Ok;
  }
}

Status Parser::power(NodePtr* out) {
  RL_TRY(unary(out, true));
  while (take_operator("**")) {
    NodePtr right;
    RL_TRY(unary(&right, true));
    RL_TRY(wrap(NodeKind::Arithmetic, out));
    (*out)->arithmetic = Arithmetic::Power;
    RL_TRY(add(out->get(), std::move(right)));
  }
  return Code::Ok;
}

Status Parser::unary(NodePtr* out, bool with_filters) {
  const Nesting nesting(this);
  RL_TRY(nesting.check());
  if (is_operator("-") || is_operator("+")) {
    const NodeKind kind = is_operator("-") ? NodeKind::Negate : NodeKind::Plus;
    ++at_;
    NodePtr value;
    RL_TRY(unary(&value, false));
    *out = make(kind);
    RL_TRY(add(out->get(), std::move(value)));
  } else {
    RL_TRY(primary(out));
  }
  RL_TRY(postfix(out));
  return with_filters ? filters_and_tests(out) : Status();
}

Status Parser::postfix(NodePtr* node) {
  while (true) {
    if (is_operator(".") || is_operator("[")) {
      RL_TRY(subscript(node));
    } else if (is_operator("(")) {
      RL_TRY(call(node));
    } else {
      return Code::Ok;
    }
  }
}

Status Parser::filters_and_tests(NodePtr* node) {
  while (true) {
    if (is_operator("|")) {
      RL_TRY(filters(node, false));
    } else if (is_name("is")) {
      RL_TRY(test(node));
    } else if (is_operator("(")) {
      RL_TRY(call(node));
    } else {
      return Code::Ok;
    }
  }
}

// `is_first`: the name of the first filter stands here without '|'.
Status Parser::filters(NodePtr* node, bool is_first) {
  while (is_first || take_operator("|")) {
    is_first = false;
    NodePtr filter = make(NodeKind::Filter);
    RL_TRY(expect_name(&filter->text));
    filter->filter = find_filter({filter->text.data(), filter->text.size()});
    if (filter->filter == nullptr) {
      return fail(filter->line, "the filter '%s' is not supported", filter->text.c_str());
    }
    RL_TRY(add(filter.get(), std::move(*node)));
    if (is_operator("(")) RL_TRY(arguments(filter.get()));
    *node = std::move(filter);
  }
  return Code::Ok;
}

Status Parser::test(NodePtr* node) {
  ++at_;  // 'is'
  const bool negated = take_name("not");
  NodePtr made = make(NodeKind::Test);
  RL_TRY(expect_name(&made->text));
  made->test = find_test({made->text.data(), made->text.size()});
  if (made->test == nullptr) {
    return fail(made->line, "the test '%s' is not supported", made->text.c_str());
  }
  RL_TRY(add(made.get(), std::move(*node)));
  const TokenType type = token().type;
  const bool has_value =
      type == TokenType::String || type == TokenType::Integer || type == TokenType::Float ||
      is_operator("[") || is_operator("{") ||
      (type == TokenType::Name && !is_name("else") && !is_name("or") && !is_name("and"));
  if (is_operator("(")) {
    RL_TRY(arguments(made.get()));
  } else if (has_value) {
    if (is_name("is")) return fail(token().line, "tests cannot follow each other");
    NodePtr value;
    RL_TRY(primary(&value));
    RL_TRY(postfix(&value));
    RL_TRY(add(made.get(), std::move(value)));
  }
  *node = std::move(made);
  if (!negated) return Code::Ok;
  NodePtr inverse = make(NodeKind::Not);
  RL_TRY(add(inverse.get(), std::move(*node)));
  *node = std::move(inverse);
  return Code::Ok;
}

Status Parser::primary(NodePtr* out) {
  if (token().type == TokenType::Name) {
    RL_TRY(name_or_constant(out));
    if ((*out)->kind == NodeKind::Name) note_read((*out)->name);
    return Code::Ok;
  }
  if (is_operator("[")) return list(out);
  if (is_operator("{")) return dict(out);
  if (take_operator("(")) {
    RL_TRY(tuple(Elements::Expressions, nullptr, true, out));
    return expect_operator(")");
  }
  *out = make(NodeKind::Constant);
  if (token().type == TokenType::Integer) {
    (*out)->constant = Value::integer(token().integer);
  } else if (token().type == TokenType::Float) {
    (*out)->constant = Value::number(token().number);
  } else if (token().type == TokenType::String) {
    std::string text = token().text;
    while (ahead().type == TokenType::String) {
      ++at_;
      text += token().text;
    }
    (*out)->constant = Value::string(Text(std::move(text)));
  } else {
    return unexpected("an expression");
  }
  ++at_;
  return Code::Ok;
}

// A name is not noted as read: it may be a target.
Status Parser::name_or_constant(NodePtr* out) {
  *out = make(NodeKind::Constant);
  const std::string name = token().text;
  ++at_;
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    (*out)->constant = Value::boolean(name[0] == 't' || name[0] == 'T');
  } else if (name == "none" || name == "None") {
    (*out)->constant = Value::none();
  } else {
    (*out)->kind = NodeKind::Name;
    (*out)->text = name;
    (*out)->name = number_of(name);
    (*out)->why = "'" + name + "' is undefined";
    for (Signature* signature : signatures_) {
      signature->takes_caller |= (*out)->name == kCaller;
      signature->takes_keywords |= (*out)->name == kKeywords;
      signature->takes_rest |= (*out)->name == kRest;
    }
  }
  return Code::Ok;
}

Status Parser::tuple(Elements elements, const char* end, bool may_be_empty, NodePtr* out) {
  NodePtr node = make(NodeKind::Tuple);
  bool has_comma = false;
  while (true) {
    if (!node->children.empty()) RL_TRY(expect_operator(","));
    const TokenType type = token().type;
    const bool at_end = type == TokenType::PrintEnd || type == TokenType::BlockEnd ||
                        is_operator(")") || (end != nullptr && is_name(end));
    if (at_end) break;
    NodePtr part;
    RL_TRY(elements == Elements::Expressions ? expression(&part)
           : elements == Elements::Plain     ? either(&part)
           : token().type == TokenType::Name ? name_or_constant(&part)
                                             : primary(&part));
    RL_TRY(add(node.get(), std::move(part)));
    if (!is_operator(",")) break;
    has_comma = true;
  }
  if (!has_comma && node->children.empty() && !may_be_empty) return unexpected("an expression");
  const bool is_one = !has_comma && !node->children.empty();
  *out = is_one ? std::move(node->children[0]) : std::move(node);
  return Code::Ok;
}

Status Parser::list(NodePtr* out) {
  *out = make(NodeKind::List);
  RL_TRY(expect_operator("["));
  while (!is_operator("]")) {
    if (!(*out)->children.empty()) {
      RL_TRY(expect_operator(","));
      if (is_operator("]")) break;
    }
    NodePtr item;
    RL_TRY(expression(&item));
    RL_TRY(add(out->get(), std::move(item)));
  }
  return expect_operator("]");
}

Status Parser::dict(NodePtr* out) {
  *out = make(NodeKind::Dict);
  RL_TRY(expect_operator("{"));
  while (!is_operator("}")) {
    if (!(*out)->children.empty()) {
      RL_TRY(expect_operator(","));
      if (is_operator("}")) break;
    }
    NodePtr part;
    RL_TRY(expression(&part));
    RL_TRY(add(out->get(), std::move(part)));
    RL_TRY(expect_operator(":"));
    RL_TRY(expression(&part));
    RL_TRY(add(out->get(), std::move(part)));
  }
  return expect_operator("}");
}

Status Parser::subscript(NodePtr* node) {
  if (take_operator(".")) {
    const bool is_index = token().type == TokenType::Integer;
    if (!is_index && token().type != TokenType::Name) return unexpected("a name or a number");
    RL_TRY(wrap(is_index ? NodeKind::Item : NodeKind::Attribute, node));
    (*node)->text = token().text;
    (*node)->why = "there is no attribute or item '" + token().text + "'";
    NodePtr index;
    if (is_index) {
      RL_TRY(primary(&index));
      return add(node->get(), std::move(index));
    }
    ++at_;
    return Code::Ok;
  }
  RL_TRY(expect_operator("["));
  NodePtr part;
  RL_TRY(index(&part));
  if (is_operator(",")) return fail(token().line, "an index of several values is not supported");
  RL_TRY(expect_operator("]"));
  RL_TRY(wrap(NodeKind::Item, node));
  const bool is_text = part->kind == NodeKind::Constant && part->constant.is(Kind::String);
  (*node)->why = is_text ? "there is no item '" + part->constant.text().bytes() + "'"
                         : "there is no such item";
  return add(node->get(), std::move(part));
}

Status Parser::index(NodePtr* out) {
  NodePtr parts[3];
  if (!is_operator(":")) RL_TRY(expression(&parts[0]));
  if (!is_operator(":")) {
    *out = std::move(parts[0]);
    return Code::Ok;
  }
  for (size_t i = 1; i < 3 && take_operator(":"); ++i) {
    if (!is_operator(":") && !is_operator("]") && !is_operator(",")) RL_TRY(expression(&parts[i]));
  }
  *out = make(NodeKind::Slice);
  for (NodePtr& part : parts) RL_TRY(add(out->get(), std::move(part)));
  return Code::Ok;
}

Status Parser::call(NodePtr* node) {
  RL_TRY(wrap(NodeKind::Call, node));
  return arguments(node->get());
}

Status Parser::arguments(Node* node) {
  RL_TRY(expect_operator("("));
  bool is_first = true;
  while (!is_operator(")")) {
    if (!is_first) {
      RL_TRY(expect_operator(","));
      if (is_operator(")")) break;
    }
    is_first = false;
    if (is_operator("*") || is_operator("**")) {
      return fail(token().line, "arguments after '%s' are not supported", token().text.c_str());
    }
    const bool named = token().type == TokenType::Name && ahead().type == TokenType::Operator &&
                       ahead().text == "=";
    if (!named && !node->keywords.empty()) {
      return fail(token().line, "an argument without a name follows one with a name");
    }
    std::string name;
    if (named) {
      name = token().text;
      at_ += 2;
    }
    NodePtr value;
    RL_TRY(expression(&value));
    if (!named) {
      RL_TRY(add(node, std::move(value)));
      continue;
    }
    node->depth = std::max(node->depth, value->depth + 1);
    node->keywords.emplace_back(std::move(name), std::move(value));
  }
  return expect_operator(")");
}

Status Parser::target(const char* end, bool with_namespace, NodePtr* out) {
  RL_TRY(tuple(Elements::Primaries, end, false, out));
  if (with_namespace && (*out)->kind == NodeKind::Name && take_operator(".")) {
    (*out)->kind = NodeKind::NamespaceItem;
    RL_TRY(expect_name(&(*out)->text));
    if ((*out)->text[0] == '_') {
      return fail(token().line, "a name in a namespace must not begin with '_': '%s'",
                  (*out)->text.c_str());
    }
  }
  return check_target(**out, with_namespace);
}

Status Parser::check_target(const Node& node, bool with_namespace) {
  if (node.kind == NodeKind::Name || node.kind == NodeKind::NamespaceItem) return Code::Ok;
  if (node.kind != NodeKind::Tuple) return fail(node.line, "only names can be set");
  for (const NodePtr& part : node.children) RL_TRY(check_target(*part, with_namespace));
  return Code::Ok;
}

}  // namespace rushlight::llm
