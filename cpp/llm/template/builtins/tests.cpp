// What stands after `is`.
#include "rushlight/llm/template/builtins/tables.h"
#include "rushlight/llm/template/builtins/text_operations.h"
#include "rushlight/llm/template/values/characters.h"
#include "rushlight/llm/template/values/operators.h"
#include "rushlight/llm/template/values/print.h"

namespace rushlight::llm {
namespace {

using Check = bool (*)(const Value& value);

// A test of the value alone.
template <Check kCheck>
Status alone(RunContext& run, const Value& value, const Arguments& arguments, bool* out) {
  Value none;
  RL_TRY(bind(run, "is", arguments, {}, &none));
  *out = kCheck(value);
  return Code::Ok;
}

template <Kind kKind>
bool has_kind(const Value& value) {
  return value.is(kKind);
}

bool is_defined(const Value& value) { return !value.is(Kind::Undefined); }
bool is_boolean_true(const Value& value) { return value.is(Kind::Boolean) && value.boolean(); }
bool is_boolean_false(const Value& value) { return value.is(Kind::Boolean) && !value.boolean(); }
bool is_any_number(const Value& value) { return value.is_number(); }
bool is_escaped(const Value&) { return false; }

// What Python's len and [] work on.
bool is_sequence(const Value& value) {
  return value.is(Kind::String) || value.is(Kind::Dict) || value.is(Kind::Undefined) ||
         (value.is_items() && !value.is(Kind::View));
}
bool is_iterable(const Value& value) {
  return is_sequence(value) || value.is(Kind::View) || value.is(Kind::Iterator) ||
         value.is(Kind::Loop);
}
bool is_callable(const Value& value) {
  return value.is(Kind::Macro) || value.is(Kind::Function) || value.is(Kind::Method) ||
         value.is(Kind::Joiner) || value.is(Kind::Undefined) || value.is(Kind::Loop);
}

Status argument(RunContext& run, const Arguments& arguments, Value* out) {
  return bind(run, "is", arguments, {"other"}, out, 1);
}

Status equal(RunContext& run, const Value& value, const Arguments& arguments, bool* out) {
  Value other;
  RL_TRY(argument(run, arguments, &other));
  return check_equal(run, value, other, out);
}

Status not_equal(RunContext& run, const Value& value, const Arguments& arguments, bool* out) {
  RL_TRY(equal(run, value, arguments, out));
  *out = !*out;
  return Code::Ok;
}

template <Order kOrder, bool kOrEqual>
Status ordered(RunContext& run, const Value& value, const Arguments& arguments, bool* out) {
  Value other;
  RL_TRY(argument(run, arguments, &other));
  Order order = Order::None;
  RL_TRY(order_of(run, value, other, &order));
  *out = order == kOrder || (kOrEqual && order == Order::Equal);
  return Code::Ok;
}

Status in(RunContext& run, const Value& value, const Arguments& arguments, bool* out) {
  Value other;
  RL_TRY(argument(run, arguments, &other));
  return contains(run, other, value, out);
}

Status same_as(RunContext& run, const Value& value, const Arguments& arguments, bool* out) {
  Value other;
  RL_TRY(argument(run, arguments, &other));
  if (value.kind() != other.kind()) {
    *out = false;
  } else if (value.object() != nullptr) {
    *out = value.object() == other.object();
  } else {
    *out = are_equal(value, other);
  }
  return Code::Ok;
}

Status remainder_is(RunContext& run, const Value& value, const Value& divisor, int64_t wanted,
                    bool* out) {
  Value rest;
  RL_TRY(arithmetic(run, Arithmetic::Modulo, value, divisor, &rest));
  *out = are_equal(rest, Value::integer(wanted));
  return Code::Ok;
}

Status odd(RunContext& run, const Value& value, const Arguments&, bool* out) {
  return remainder_is(run, value, Value::integer(2), 1, out);
}
Status even(RunContext& run, const Value& value, const Arguments&, bool* out) {
  return remainder_is(run, value, Value::integer(2), 0, out);
}
Status divisible(RunContext& run, const Value& value, const Arguments& arguments, bool* out) {
  Value other;
  RL_TRY(argument(run, arguments, &other));
  return remainder_is(run, value, other, 0, out);
}

template <unsigned kFlag>
Status in_case(RunContext& run, const Value& value, const Arguments&, bool* out) {
  Text text;
  RL_TRY(to_text(run, value, &text));
  *out = has_only_case(text.view(), kFlag);
  return Code::Ok;
}

Status is_filter(RunContext& run, const Value& value, const Arguments&, bool* out) {
  const Text* name = nullptr;
  RL_TRY(text_argument(run, "is filter", value, &name));
  *out = find_filter(name->view()) != nullptr;
  return Code::Ok;
}

Status is_test(RunContext& run, const Value& value, const Arguments&, bool* out) {
  const Text* name = nullptr;
  RL_TRY(text_argument(run, "is test", value, &name));
  *out = find_test(name->view()) != nullptr;
  return Code::Ok;
}

constexpr Test kTests[] = {
    {"defined", alone<is_defined>},
    {"undefined", alone<has_kind<Kind::Undefined>>},
    {"none", alone<has_kind<Kind::None>>},
    {"boolean", alone<has_kind<Kind::Boolean>>},
    {"true", alone<is_boolean_true>},
    {"false", alone<is_boolean_false>},
    {"integer", alone<has_kind<Kind::Integer>>},
    {"float", alone<has_kind<Kind::Float>>},
    {"number", alone<is_any_number>},
    {"string", alone<has_kind<Kind::String>>},
    {"mapping", alone<has_kind<Kind::Dict>>},
    {"sequence", alone<is_sequence>},
    {"iterable", alone<is_iterable>},
    {"callable", alone<is_callable>},
    {"escaped", alone<is_escaped>},
    {"lower", in_case<kLowercase>},
    {"upper", in_case<kUppercase>},
    {"odd", odd},
    {"even", even},
    {"divisibleby", divisible},
    {"filter", is_filter},
    {"test", is_test},
    {"sameas", same_as},
    {"in", in},
    {"==", equal},
    {"eq", equal},
    {"equalto", equal},
    {"!=", not_equal},
    {"ne", not_equal},
    {">", ordered<Order::Greater, false>},
    {"gt", ordered<Order::Greater, false>},
    {"greaterthan", ordered<Order::Greater, false>},
    {">=", ordered<Order::Greater, true>},
    {"ge", ordered<Order::Greater, true>},
    {"<", ordered<Order::Less, false>},
    {"lt", ordered<Order::Less, false>},
    {"lessthan", ordered<Order::Less, false>},
    {"<=", ordered<Order::Less, true>},
    {"le", ordered<Order::Less, true>},
};

}  // namespace

Span<const Test> tests() { return kTests; }

}  // namespace rushlight::llm
