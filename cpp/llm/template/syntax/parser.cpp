#include "rushlight/llm/template/syntax/parser.h"

#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <iterator>
#include <utility>

namespace rushlight::llm {
namespace {

constexpr size_t kMostNesting = 100;
constexpr uint32_t kMostDepth = 300;  // of one expression

// The names in both lists, which are sorted.
std::vector<uint32_t> common(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  std::vector<uint32_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace

Parser::Parser(std::vector<Token> tokens, Syntax* syntax, Message* message)
    : tokens_(std::move(tokens)), syntax_(syntax), message_(message) {
  for (const char* name : {"loop", "caller", "kwargs", "varargs"}) number_of(name);
}

Status Parser::parse() { return statements({}, &syntax_->body); }

Status Nesting::check() const {
  if (parser_->nesting_ <= kMostNesting) return Code::Ok;
  return parser_->fail(parser_->token().line, "brackets and blocks nest deeper than %zu",
                       kMostNesting);
}

Status Parser::fail(uint32_t line, const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  const Status status = message_->vfail(Code::InvalidArgument, format, args);
  va_end(args);
  message_->prepend("chat template, line %u: ", line);
  return status;
}

Status Parser::unexpected(const char* expected) {
  const Token& got = token();
  const char* what = "";
  switch (got.type) {
    case TokenType::Data:
      what = "text";
      break;
    case TokenType::PrintBegin:
      what = "'{{'";
      break;
    case TokenType::PrintEnd:
      what = "'}}'";
      break;
    case TokenType::BlockBegin:
      what = "'{%'";
      break;
    case TokenType::BlockEnd:
      what = "'%}'";
      break;
    case TokenType::String:
      what = "a string";
      break;
    case TokenType::End:
      what = "the end of the template";
      break;
    default:
      return fail(got.line, "expected %s, got '%s'", expected, got.text.c_str());
  }
  return fail(got.line, "expected %s, got %s", expected, what);
}

bool Parser::is_operator(const char* sign) const {
  return token().type == TokenType::Operator && token().text == sign;
}

bool Parser::is_name(const char* name) const {
  return token().type == TokenType::Name && token().text == name;
}

bool Parser::take_operator(const char* sign) {
  const bool here = is_operator(sign);
  if (here) ++at_;
  return here;
}

bool Parser::take_name(const char* name) {
  const bool here = is_name(name);
  if (here) ++at_;
  return here;
}

Status Parser::expect_operator(const char* sign) {
  if (take_operator(sign)) return Code::Ok;
  char expected[8] = {'\'', 0};
  std::strncat(std::strncat(expected, sign, 3), "'", 2);
  return unexpected(expected);
}

Status Parser::expect_name(std::string* name) {
  if (token().type != TokenType::Name) return unexpected("a name");
  *name = token().text;
  ++at_;
  return Code::Ok;
}

NodePtr Parser::make(NodeKind kind) const {
  NodePtr node = std::make_unique<Node>();
  node->kind = kind;
  node->line = token().line;
  return node;
}

Status Parser::wrap(NodeKind kind, NodePtr* node) {
  NodePtr outer = make(kind);
  outer->line = (*node)->line;
  RL_TRY(add(outer.get(), std::move(*node)));
  *node = std::move(outer);
  return Code::Ok;
}

Status Parser::add(Node* parent, NodePtr child) {
  if (child != nullptr) parent->depth = std::max(parent->depth, child->depth + 1);
  parent->children.push_back(std::move(child));
  if (parent->depth <= kMostDepth) return Code::Ok;
  return fail(parent->line, "an expression nests deeper than %u", kMostDepth);
}

uint32_t Parser::number_of(const std::string& name) {
  const auto [place, is_new] = numbers_.emplace(name, static_cast<uint32_t>(syntax_->names.size()));
  if (is_new) syntax_->names.push_back(name);
  return place->second;
}

// --- statements
// -----------------------------------------------------------------------------------

void Parser::bind(uint32_t name) {
  if (bindings_.size() <= name) bindings_.resize(name + 1);
  ++bindings_[name];
  bound_.push_back(name);
}

void Parser::bind(const Node& target) {
  if (target.kind == NodeKind::Name) bind(target.name);
  for (const NodePtr& part : target.children) bind(*part);
}

std::vector<uint32_t> Parser::unbind(size_t place) {
  const auto from = bound_.begin() + static_cast<std::ptrdiff_t>(place);
  std::vector<uint32_t> names(from, bound_.end());
  for (const uint32_t name : names) --bindings_[name];
  bound_.erase(from, bound_.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

void Parser::note_read(uint32_t name) {
  const bool is_bound = name < bindings_.size() && bindings_[name] > 0;
  if (is_input_.size() <= name) is_input_.resize(name + 1);
  if (name >= kSpecialNames && !is_bound && !is_input_[name]) {
    is_input_[name] = true;
    syntax_->inputs.push_back(name);
  }
  note(name);
}

// A name that is read or set outside of inner scopes.
void Parser::note(uint32_t name) {
  if (scopes_ != 0) return;
  if (is_noted_.size() <= name) is_noted_.resize(name + 1);
  is_noted_[name] = true;
}

void Parser::note_set(uint32_t name) {
  const bool is_new = is_noted_.size() <= name || !is_noted_[name];
  if (scopes_ == 0 && branches_ == 0 && is_new) syntax_->hidden.push_back(name);
  note(name);
  bind(name);
}

void Parser::note_set(const Node& target) {
  if (target.kind == NodeKind::Name) note_set(target.name);
  if (target.kind == NodeKind::NamespaceItem) note_read(target.name);
  for (const NodePtr& part : target.children) note_set(*part);
}

Status Parser::statements(Tags ends, Nodes* body) {
  const Nesting nesting(this);
  RL_TRY(nesting.check());
  while (token().type != TokenType::End) {
    if (token().type == TokenType::Data) {
      body->push_back(make(NodeKind::Data));
      body->back()->text = token().text;
      ++at_;
      continue;
    }
    if (token().type == TokenType::PrintBegin) {
      ++at_;
      body->push_back(make(NodeKind::Print));
      NodePtr value;
      RL_TRY(tuple(Elements::Expressions, nullptr, false, &value));
      RL_TRY(add(body->back().get(), std::move(value)));
      if (token().type != TokenType::PrintEnd) return unexpected("'}}'");
      ++at_;
      continue;
    }
    ++at_;  // '{%'
    if (token().type != TokenType::Name) return unexpected("the name of a block");
    const bool ends_here =
        std::any_of(ends.begin(), ends.end(), [&](const char* end) { return is_name(end); });
    if (ends_here) return Code::Ok;
    RL_TRY(statement(body));
    RL_TRY(end_of_tag());
  }
  return Code::Ok;
}

Status Parser::end_of_tag() {
  if (token().type != TokenType::BlockEnd) return unexpected("'%}'");
  ++at_;
  return Code::Ok;
}

Status Parser::statement(Nodes* body) {
  using Read = Status (Parser::*)(NodePtr*);
  constexpr std::pair<const char*, Read> kStatements[] = {
      {"if", &Parser::if_statement},     {"for", &Parser::for_statement},
      {"set", &Parser::set_statement},   {"macro", &Parser::macro},
      {"call", &Parser::call_block},     {"filter", &Parser::filter_block},
      {"with", &Parser::with_statement}, {"generation", &Parser::generation},
      {"break", &Parser::jump},          {"continue", &Parser::jump}};
  for (const auto& [name, read] : kStatements) {
    if (!is_name(name)) continue;
    NodePtr node;
    RL_TRY((this->*read)(&node));
    body->push_back(std::move(node));
    return Code::Ok;
  }
  const std::string& name = token().text;
  constexpr const char* kNotSupported[] = {"include", "import",     "from", "extends",
                                           "block",   "autoescape", "do",   "print"};
  for (const char* other : kNotSupported) {
    if (name == other) return fail(token().line, "{%% %s %%} is not supported", other);
  }
  const bool ends = name.compare(0, 3, "end") == 0 || name == "else" || name == "elif";
  return fail(token().line, ends ? "{%% %s %%} has no beginning" : "unknown block {%% %s %%}",
              name.c_str());
}

// The rest of a tag, and its statements up to one of `ends`, whose name is the next token.
Status Parser::body_of_tag(Tags ends, Nodes* body) {
  const uint32_t line = token().line;
  take_operator(":");
  RL_TRY(end_of_tag());
  RL_TRY(statements(ends, body));
  if (token().type == TokenType::Name) return Code::Ok;
  return fail(line, "a block has no {%% %s %%}", *(ends.end() - 1));
}

Status Parser::if_statement(NodePtr* out) {
  *out = make(NodeKind::If);
  Node* node = out->get();
  const size_t place = bound_.size();
  std::vector<uint32_t> everywhere;  // names that all branches set
  for (bool is_first = true;; is_first = false) {
    ++at_;
    NodePtr condition;
    RL_TRY(tuple(Elements::Plain, nullptr, false, &condition));
    RL_TRY(add(node, std::move(condition)));
    ++branches_;
    RL_TRY(body_of_tag({"elif", "else", "endif"}, &node->body));
    --branches_;
    const std::vector<uint32_t> names = unbind(place);
    everywhere = is_first ? names : common(everywhere, names);
    if (!is_name("elif")) break;
    node->otherwise.push_back(make(NodeKind::If));
    node = node->otherwise.back().get();
  }
  ++branches_;
  if (take_name("else")) RL_TRY(body_of_tag({"endif"}, &node->otherwise));
  --branches_;
  for (const uint32_t name : common(everywhere, unbind(place))) bind(name);
  ++at_;
  return Code::Ok;
}

Status Parser::for_statement(NodePtr* out) {
  *out = make(NodeKind::For);
  Node* node = out->get();
  ++at_;
  NodePtr part;
  RL_TRY(target("in", false, &part));
  RL_TRY(add(node, std::move(part)));
  if (!take_name("in")) return unexpected("'in'");
  RL_TRY(tuple(Elements::Plain, "recursive", false, &part));
  RL_TRY(add(node, std::move(part)));
  NodePtr condition;
  const size_t place = bound_.size();
  bind(*node->children[0]);
  ++scopes_;
  if (take_name("if")) RL_TRY(expression(&condition));
  RL_TRY(add(node, std::move(condition)));
  if (is_name("recursive")) return fail(node->line, "recursive loops are not supported");
  ++loops_;
  RL_TRY(body_of_tag({"else", "endfor"}, &node->body));
  --loops_;
  if (take_name("else")) RL_TRY(body_of_tag({"endfor"}, &node->otherwise));
  --scopes_;
  unbind(place);
  ++at_;
  return Code::Ok;
}

Status Parser::set_statement(NodePtr* out) {
  *out = make(NodeKind::Set);
  Node* node = out->get();
  ++at_;
  NodePtr part;
  RL_TRY(target(nullptr, true, &part));
  RL_TRY(add(node, std::move(part)));
  if (take_operator("=")) {
    RL_TRY(tuple(Elements::Expressions, nullptr, false, &part));
    note_set(*node->children[0]);
    return add(node, std::move(part));
  }
  note_set(*node->children[0]);
  node->kind = NodeKind::SetBlock;
  NodePtr filter;
  RL_TRY(filters(&filter, false));
  RL_TRY(add(node, std::move(filter)));
  return scoped_body("endset", node);
}

// The body of a block that is no part of the loops around it.
Status Parser::scoped_body(const char* end, Node* node) {
  const size_t loops = std::exchange(loops_, 0), place = bound_.size();
  ++scopes_;
  RL_TRY(body_of_tag({end}, &node->body));
  --scopes_;
  unbind(place);
  loops_ = loops;
  ++at_;
  return Code::Ok;
}

Status Parser::with_statement(NodePtr* out) {
  *out = make(NodeKind::With);
  Node* node = out->get();
  ++at_;
  while (token().type != TokenType::BlockEnd) {
    if (!node->children.empty()) RL_TRY(expect_operator(","));
    NodePtr part;
    RL_TRY(target(nullptr, false, &part));
    RL_TRY(add(node, std::move(part)));
    RL_TRY(expect_operator("="));
    RL_TRY(expression(&part));
    RL_TRY(add(node, std::move(part)));
  }
  const size_t place = bound_.size();
  for (size_t i = 0; i < node->children.size(); i += 2) bind(*node->children[i]);
  ++scopes_;
  RL_TRY(body_of_tag({"endwith"}, &node->body));
  --scopes_;
  unbind(place);
  ++at_;
  return Code::Ok;
}

Status Parser::signature(Signature* signature) {
  RL_TRY(expect_operator("("));
  ++scopes_;
  while (!is_operator(")")) {
    if (!signature->parameters.empty()) RL_TRY(expect_operator(","));
    Parameter parameter;
    RL_TRY(expect_name(&parameter.text));
    parameter.name = number_of(parameter.text);
    parameter.why = "the parameter '" + parameter.text + "' was not passed";
    if (take_operator("=")) {
      RL_TRY(expression(&parameter.default_value));
    } else if (!signature->parameters.empty() &&
               signature->parameters.back().default_value != nullptr) {
      return fail(token().line, "the parameter '%s' needs a default, as the one before it has",
                  parameter.text.c_str());
    }
    bind(parameter.name);
    signature->parameters.push_back(std::move(parameter));
  }
  --scopes_;
  return expect_operator(")");
}

Status Parser::macro(NodePtr* out) {
  *out = make(NodeKind::Macro);
  Node* node = out->get();
  ++at_;
  RL_TRY(expect_name(&node->text));
  node->name = number_of(node->text);
  note_set(node->name);
  node->signature = std::make_unique<Signature>();
  const size_t place = bound_.size();
  RL_TRY(signature(node->signature.get()));
  signatures_.push_back(node->signature.get());
  RL_TRY(scoped_body("endmacro", node));
  signatures_.pop_back();
  unbind(place);
  return Code::Ok;
}

Status Parser::call_block(NodePtr* out) {
  *out = make(NodeKind::CallBlock);
  Node* node = out->get();
  ++at_;
  node->text = "caller";
  node->signature = std::make_unique<Signature>();
  const size_t place = bound_.size();
  if (is_operator("(")) RL_TRY(signature(node->signature.get()));
  NodePtr call;
  RL_TRY(expression(&call));
  if (call->kind != NodeKind::Call) return fail(node->line, "{%% call %%} needs a call");
  RL_TRY(add(node, std::move(call)));
  signatures_.push_back(node->signature.get());
  RL_TRY(scoped_body("endcall", node));
  signatures_.pop_back();
  unbind(place);
  return Code::Ok;
}

Status Parser::filter_block(NodePtr* out) {
  *out = make(NodeKind::FilterBlock);
  Node* node = out->get();
  ++at_;
  NodePtr filter;
  RL_TRY(filters(&filter, true));
  RL_TRY(add(node, std::move(filter)));
  const size_t place = bound_.size();
  ++scopes_;
  RL_TRY(body_of_tag({"endfilter"}, &node->body));
  --scopes_;
  unbind(place);
  ++at_;
  return Code::Ok;
}

Status Parser::generation(NodePtr* out) {
  *out = make(NodeKind::Generation);
  ++at_;
  return scoped_body("endgeneration", out->get());
}

Status Parser::jump(NodePtr* out) {
  *out = make(is_name("break") ? NodeKind::Break : NodeKind::Continue);
  if (loops_ == 0) return fail(token().line, "{%% %s %%} is in no loop", token().text.c_str());
  ++at_;
  return Code::Ok;
}

}  // namespace rushlight::llm
