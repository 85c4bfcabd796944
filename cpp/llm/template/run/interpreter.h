// Runs the syntax tree of a template. One object serves one run.
#pragma once

#include <vector>

#include "rushlight/llm/template/builtins/arguments.h"
#include "rushlight/llm/template/syntax/node.h"

namespace rushlight::llm {

class Interpreter {
 public:
  // `variables` has a value for each name of the syntax, Missing for those without one.
  Interpreter(const Syntax& syntax, std::vector<Value> variables, RunContext& run)
      : syntax_(syntax), run_(run), variables_(std::move(variables)) {}
  Status run(Text* out);

 private:
  // expressions.cpp
  Status evaluate(const Node& node, Value* out);
  Status evaluate_by_kind(const Node& node, Value* out);
  Status evaluate_name(const Node& node, Value* out);
  Status evaluate_items(const Node& node, Value* out);
  Status evaluate_dict(const Node& node, Value* out);
  Status evaluate_item(const Node& node, Value* out);
  Status evaluate_attribute(const Node& node, Value* out);
  Status evaluate_test(const Node& node, Value* out);
  Status evaluate_sign(const Node& node, Value* out);
  Status evaluate_choice(const Node& node, Value* out);
  Status evaluate_arithmetic(const Node& node, Value* out);
  Status evaluate_comparison(const Node& node, Value* out);
  Status evaluate_concat(const Node& node, Value* out);
  Status evaluate_conditional(const Node& node, Value* out);
  Status evaluate_filter(const Node& node, const Value& block, Value* out);
  Status evaluate_arguments(const Node& node, Arguments* arguments);
  Status compare(Comparison comparison, const Value& a, const Value& b, bool* holds);
  bool find_variable(uint32_t name, Value* out) const;

  // calls.cpp
  Status evaluate_call(const Node& node, const Value& caller, Value* out);
  Status call(const Value& callee, const Arguments& arguments, Value* out);
  Status call_macro(const Value& macro, const Arguments& arguments, Value* out);
  Status bind_macro(const Node& macro, const Arguments& arguments);
  Status bind_extras(const Node& macro, const Arguments& arguments, std::vector<bool>* used);
  Value make_macro(const Node& node);

  // statements.cpp
  Status execute(const Nodes& body);
  Status execute_one(const Node& node);
  Status execute_print(const Node& node);
  Status execute_for(const Node& node);
  Status loop_over(const Node& node, const Ref<ListObject>& items);
  Status chosen_items(const Node& node, const ListObject& items, Ref<ListObject>* chosen);
  Status execute_set_block(const Node& node);
  Status execute_with(const Node& node);
  Status execute_filter_block(const Node& node);
  Status execute_call_block(const Node& node);
  Status execute_scoped(const Nodes& body);
  // Runs the body in a scope of its own and gives what it prints.
  Status capture(const Nodes& body, Text* out);
  Status print(const Value& value);
  Status assign(const Node& target, const Value& value);
  Status assign_to_namespace(const Node& target, const Value& value);
  void set_variable(uint32_t name, Value value);

  // Makes a scope inside the current one for as long as it lives.
  class InnerScope;
  // Counts how deep calls and expressions are inside each other.
  class Depth;

  enum class Jump : uint8_t { None, Break, Continue };

  const Syntax& syntax_;
  RunContext& run_;
  std::vector<Value> variables_;  // of the whole template
  Ref<Scope> scope_;              // null: that of the whole template
  Text* out_ = nullptr;
  Jump jump_ = Jump::None;
  uint32_t depth_ = 0;
};

class Interpreter::InnerScope {
 public:
  InnerScope(Interpreter* interpreter, Ref<Scope> parent)
      : interpreter_(interpreter), before_(interpreter->scope_) {
    interpreter->scope_ = make_ref<Scope>();
    interpreter->scope_->parent = std::move(parent);
  }
  ~InnerScope() { interpreter_->scope_ = before_; }
  InnerScope(const InnerScope&) = delete;
  InnerScope& operator=(const InnerScope&) = delete;

 private:
  Interpreter* interpreter_;
  Ref<Scope> before_;
};

class Interpreter::Depth {
 public:
  explicit Depth(Interpreter* interpreter) : interpreter_(interpreter) { ++interpreter->depth_; }
  ~Depth() { --interpreter_->depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;
  Status check() const {
    RL_TRY(interpreter_->run_.charge(1));
    const uint32_t most = interpreter_->run_.limits.depth;
    if (interpreter_->depth_ <= most) return Code::Ok;
    return interpreter_->run_.fail("calls and expressions nest deeper than %u", most);
  }

 private:
  Interpreter* interpreter_;
};

// A macro, or the block of a call; `scope` is where it was defined.
struct MacroObject : Object {
  const Node* node = nullptr;
  Ref<Scope> scope;
};

}  // namespace rushlight::llm
