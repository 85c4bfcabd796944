#include <algorithm>
#include <utility>

#include "rushlight/llm/template/builtins/access.h"
#include "rushlight/llm/template/builtins/tables.h"
#include "rushlight/llm/template/run/interpreter.h"

namespace rushlight::llm {
namespace {

constexpr char kNoCaller[] = "the macro was not called by a block: 'caller' is undefined";

}  // namespace

// `caller` is the block of a call; Missing if there is none.
Status Interpreter::evaluate_call(const Node& node, const Value& caller, Value* out) {
  Value callee;
  RL_TRY(evaluate(*node.children[0], &callee));
  Arguments arguments;
  RL_TRY(evaluate_arguments(node, &arguments));
  if (!caller.is(Kind::Missing)) arguments.named.emplace_back("caller", caller);
  run_.line = node.line;
  return call(callee, arguments, out);
}

Status Interpreter::call(const Value& callee, const Arguments& arguments, Value* out) {
  switch (callee.kind()) {
    case Kind::Macro:
      return call_macro(callee, arguments, out);
    case Kind::Function:
      return callee.function()->call(run_, arguments, out);
    case Kind::Method:
      return call_method(run_, callee.as<MethodObject>(), arguments, out);
    case Kind::Joiner: {
      auto& joiner = callee.as<ListObject>();
      *out = joiner.next++ == 0 ? Value::string(Text()) : joiner.items[0];
      return Code::Ok;
    }
    case Kind::Undefined:
      return run_.fail_undefined(callee);
    case Kind::Loop:
      return run_.fail("recursive loops are not supported");
    default:
      return run_.fail("a %s cannot be called", type_name(callee));
  }
}

Value Interpreter::make_macro(const Node& node) {
  Ref<MacroObject> macro = make_ref<MacroObject>();
  macro->node = &node;
  macro->scope = scope_;
  if (scope_) run_.keep(scope_);
  return Value::object(Kind::Macro, macro);
}

Status Interpreter::call_macro(const Value& macro, const Arguments& arguments, Value* out) {
  const Depth depth(this);
  RL_TRY(depth.check());
  const auto& object = macro.as<MacroObject>();
  const InnerScope scope(this, object.scope);
  RL_TRY(bind_macro(*object.node, arguments));
  Text text;
  Text* const before = std::exchange(out_, &text);
  const Status status = execute(object.node->body);
  out_ = before;
  RL_TRY(status);
  return run_.make_text(std::move(text), out);
}

// Sets the parameters in the current scope; defaults see those before them.
Status Interpreter::bind_macro(const Node& macro, const Arguments& arguments) {
  const std::vector<Parameter>& parameters = macro.signature->parameters;
  std::vector<bool> used(arguments.named.size(), false);
  std::vector<Value> values(parameters.size(), Value::missing());
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (i < arguments.values.size()) {
      values[i] = arguments.values[i];
      continue;
    }
    for (size_t n = 0; n < used.size(); ++n) {
      if (arguments.named[n].first != parameters[i].text) continue;
      values[i] = arguments.named[n].second;
      used[n] = true;
    }
  }
  RL_TRY(bind_extras(macro, arguments, &used));
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (values[i].is(Kind::Missing)) {
      values[i] = Value::undefined(parameters[i].why.c_str());
      if (parameters[i].default_value != nullptr) {
        RL_TRY(evaluate(*parameters[i].default_value, &values[i]));
      }
    }
    scope_->set(parameters[i].name, std::move(values[i]));
  }
  return Code::Ok;
}

// The special variables, and what is left over.
Status Interpreter::bind_extras(const Node& macro, const Arguments& arguments,
                                std::vector<bool>* used) {
  const Signature& signature = *macro.signature;
  const bool names_caller =
      std::any_of(signature.parameters.begin(), signature.parameters.end(),
                  [](const Parameter& parameter) { return parameter.name == kCaller; });
  if (signature.takes_caller && !names_caller) {
    Value caller = Value::undefined(kNoCaller);
    for (size_t i = 0; i < used->size(); ++i) {
      if (arguments.named[i].first != "caller") continue;
      if (!arguments.named[i].second.is(Kind::None)) caller = arguments.named[i].second;
      (*used)[i] = true;
    }
    scope_->set(kCaller, std::move(caller));
  }
  std::vector<Entry> keywords;
  for (size_t i = 0; i < used->size(); ++i) {
    const std::string& name = arguments.named[i].first;
    if ((*used)[i]) continue;
    if (!signature.takes_keywords) {
      return run_.fail("the macro '%s' has no parameter '%s'", macro.text.c_str(), name.c_str());
    }
    keywords.emplace_back(string_value({name.data(), name.size()}), arguments.named[i].second);
  }
  if (signature.takes_keywords) {
    Value dict;
    RL_TRY(run_.make_dict(std::move(keywords), &dict));
    scope_->set(kKeywords, std::move(dict));
  }
  const size_t count = std::min(signature.parameters.size(), arguments.values.size());
  if (signature.takes_rest) {
    Value rest;
    RL_TRY(run_.make_items(
        Kind::Tuple,
        {arguments.values.begin() + static_cast<std::ptrdiff_t>(count), arguments.values.end()},
        &rest));
    scope_->set(kRest, std::move(rest));
  } else if (count < arguments.values.size()) {
    return run_.fail("the macro '%s' takes at most %zu arguments, got %zu", macro.text.c_str(),
                     signature.parameters.size(), arguments.values.size());
  }
  return Code::Ok;
}

}  // namespace rushlight::llm
