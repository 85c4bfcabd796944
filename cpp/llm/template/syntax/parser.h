// Parses a template into its syntax tree, with the precedences of Jinja.
#pragma once

#include <initializer_list>
#include <string>
#include <unordered_map>
#include <vector>

#include "rushlight/llm/template/syntax/lexer.h"
#include "rushlight/llm/template/syntax/node.h"

namespace rushlight::llm {

class Parser {
 public:
  Parser(std::vector<Token> tokens, Syntax* syntax, Message* message);
  Status parse();

 private:
  using Tags = std::initializer_list<const char*>;

  // parser.cpp: statements.
  Status statements(Tags ends, Nodes* body);
  Status statement(Nodes* body);
  Status body_of_tag(Tags ends, Nodes* body);
  Status end_of_tag();
  Status if_statement(NodePtr* out);
  Status for_statement(NodePtr* out);
  Status for_body(Node* node);
  Status set_statement(NodePtr* out);
  Status with_statement(NodePtr* out);
  Status macro(NodePtr* out);
  Status call_block(NodePtr* out);
  Status filter_block(NodePtr* out);
  Status generation(NodePtr* out);
  Status jump(NodePtr* out);
  Status signature(Signature* signature);
  Status scoped_body(const char* end, Node* node);

  // expressions.cpp
  Status expression(NodePtr* out);
  Status either(NodePtr* out);
  Status both(NodePtr* out);
  Status negation(NodePtr* out);
  Status comparison(NodePtr* out);
  Status sum(NodePtr* out);
  Status concat(NodePtr* out);
  Status product(NodePtr* out);
  Status power(NodePtr* out);
  Status unary(NodePtr* out, bool with_filters);
  Status postfix(NodePtr* node);
  Status filters_and_tests(NodePtr* node);
  Status filters(NodePtr* node, bool is_first);
  Status test(NodePtr* node);
  Status primary(NodePtr* out);
  Status name_or_constant(NodePtr* out);
  // `tuple` reads values with commas between them up to the end of the tag, a bracket, or this
  // name.
  enum class Elements { Expressions, Plain, Primaries };
  Status tuple(Elements elements, const char* end, bool may_be_empty, NodePtr* out);
  Status list(NodePtr* out);
  Status dict(NodePtr* out);
  Status subscript(NodePtr* node);
  Status index(NodePtr* out);
  Status call(NodePtr* node);
  Status arguments(Node* node);
  Status target(const char* end, bool with_namespace, NodePtr* out);
  Status check_target(const Node& node, bool with_namespace);

  const Token& token() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  bool is_operator(const char* sign) const;
  bool is_name(const char* name) const;
  bool take_operator(const char* sign);
  bool take_name(const char* name);
  Status expect_operator(const char* sign);
  Status expect_name(std::string* name);
  Status unexpected(const char* expected);
  [[gnu::format(printf, 3, 4)]] Status fail(uint32_t line, const char* format, ...);

  NodePtr make(NodeKind kind) const;
  // Moves the node into a new one of this kind, as its child.
  Status wrap(NodeKind kind, NodePtr* node);
  Status add(Node* parent, NodePtr child);
  uint32_t number_of(const std::string& name);
  void note(uint32_t name);
  void note_read(uint32_t name);
  void note_set(const Node& target);
  void note_set(uint32_t name);
  // Names that are bound from a place on are free again; returns them.
  std::vector<uint32_t> unbind(size_t place);
  void bind(uint32_t name);
  void bind(const Node& target);

  std::vector<Token> tokens_;
  Syntax* syntax_;
  Message* message_;
  size_t at_ = 0;
  size_t nesting_ = 0;
  size_t loops_ = 0;                // around this statement
  size_t scopes_ = 0;               // inside each other here
  size_t branches_ = 0;             // of conditions
  std::vector<bool> is_noted_;      // by numbers of names: read or set outside of inner scopes
  std::vector<uint32_t> bound_;     // names that are set here, in order
  std::vector<uint32_t> bindings_;  // by numbers of names: how often they are among these
  std::vector<bool> is_input_;      // by numbers of names
  std::vector<Signature*> signatures_;
  std::unordered_map<std::string, uint32_t> numbers_;

  friend class Nesting;
};

// Counts how deep brackets and blocks are inside each other, since the parser recurses.
class Nesting {
 public:
  explicit Nesting(Parser* parser) : parser_(parser) { ++parser_->nesting_; }
  ~Nesting() { --parser_->nesting_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  Status check() const;

 private:
  Parser* parser_;
};

}  // namespace rushlight::llm
