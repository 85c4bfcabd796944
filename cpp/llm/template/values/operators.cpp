#include "rushlight/llm/template/values/operators.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "rushlight/llm/template/values/characters.h"
#include "rushlight/llm/template/values/format.h"

namespace rushlight::llm {
namespace {

const char* sign_of(Arithmetic op) {
  constexpr const char* kSigns[] = {"+", "-", "*", "/", "//", "%", "**"};
  return kSigns[static_cast<size_t>(op)];
}

Status too_large(RunContext& run) { return run.fail("an integer would be beyond 64 bits"); }

Status power(RunContext& run, int64_t base, int64_t exponent, Value* out) {
  int64_t result = 1;
  if (exponent > 64 && base >= -1 && base <= 1) exponent = 64 + exponent % 2;
  for (int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) return too_large(run);
  }
  *out = Value::integer(result);
  return Code::Ok;
}

Status integers(RunContext& run, Arithmetic op, int64_t a, int64_t b, Value* out) {
  int64_t result = 0;
  bool overflows = false;
  switch (op) {
    case Arithmetic::Add:
      overflows = __builtin_add_overflow(a, b, &result);
      break;
    case Arithmetic::Subtract:
      overflows = __builtin_sub_overflow(a, b, &result);
      break;
    case Arithmetic::Multiply:
      overflows = __builtin_mul_overflow(a, b, &result);
      break;
    case Arithmetic::Power:
      return power(run, a, b, out);
    default: {  // // and %, which round down
      if (b == -1) {
        overflows = op == Arithmetic::FloorDivide && __builtin_sub_overflow(int64_t{0}, a, &result);
        break;
      }
      const int64_t rest = a % b;
      const bool down = rest != 0 && (rest < 0) != (b < 0);
      result = op == Arithmetic::Modulo ? rest + (down ? b : 0) : a / b - (down ? 1 : 0);
    }
  }
  if (overflows) return too_large(run);
  *out = Value::integer(result);
  return Code::Ok;
}

// Python's float modulo has the sign of the divisor, and // is consistent with it.
double modulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0) {
    if ((b < 0) != (rest < 0)) rest += b;
  } else {
    rest = std::copysign(0.0, b);
  }
  return rest;
}

double floor_divide(double a, double b) {
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

Status floats(RunContext& run, Arithmetic op, double a, double b, Value* out) {
  double result = 0;
  switch (op) {
    case Arithmetic::Add:
      result = a + b;
      break;
    case Arithmetic::Subtract:
      result = a - b;
      break;
    case Arithmetic::Multiply:
      result = a * b;
      break;
    case Arithmetic::Divide:
      result = a / b;
      break;
    case Arithmetic::FloorDivide:
      result = floor_divide(a, b);
      break;
    case Arithmetic::Modulo:
      result = modulo(a, b);
      break;
    case Arithmetic::Power:
      if (a < 0 && b != std::floor(b)) return run.fail("a power would be a complex number");
      result = std::pow(a, b);
      if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
        return run.fail(a == 0 ? "0 cannot be raised to a negative power"
                               : "a power is beyond the greatest float");
      }
      break;
  }
  *out = Value::number(result);
  return Code::Ok;
}

Status numbers(RunContext& run, Arithmetic op, const Value& a, const Value& b, Value* out) {
  const bool divides =
      op == Arithmetic::Divide || op == Arithmetic::FloorDivide || op == Arithmetic::Modulo;
  if (divides && b.number() == 0) return run.fail("division by zero");
  const bool whole = a.is_whole() && b.is_whole() && op != Arithmetic::Divide &&
                     (op != Arithmetic::Power || b.integer() >= 0);
  if (whole) return integers(run, op, a.integer(), b.integer(), out);
  return floats(run, op, a.number(), b.number(), out);
}

Status repeated(RunContext& run, const Value& value, int64_t count, Value* out) {
  const auto times = static_cast<size_t>(std::max<int64_t>(count, 0));
  if (value.is(Kind::String)) {
    if (times > 1 && value.text().size() > run.limits.output / times) {
      return run.charge_bytes(run.limits.output + 1);
    }
    Text text;
    for (size_t i = 0; i < times; ++i) RL_TRY(run.append(value.text(), &text));
    return run.make_text(std::move(text), out);
  }
  if (times > 1 && value.items().size() > run.limits.weight / times) {
    return run.fail("a value would hold more than %u", run.limits.weight);
  }
  std::vector<Value> items;
  for (size_t i = 0; i < times && !value.items().empty(); ++i) {
    items.insert(items.end(), value.items().begin(), value.items().end());
  }
  return run.make_items(value.kind(), std::move(items), out);
}

bool can_repeat(const Value& value) {
  return value.is(Kind::String) || value.is(Kind::List) || value.is(Kind::Tuple);
}

Status joined(RunContext& run, const Value& a, const Value& b, Value* out) {
  if (a.is(Kind::String)) {
    Text text;
    RL_TRY(run.append(a.text(), &text));
    RL_TRY(run.append(b.text(), &text));
    *out = Value::string(std::move(text));
    return Code::Ok;
  }
  std::vector<Value> items = a.items();
  items.insert(items.end(), b.items().begin(), b.items().end());
  return run.make_items(a.kind(), std::move(items), out);
}

Order order_of_numbers(double a, double b) {
  if (a < b) return Order::Less;
  if (a > b) return Order::Greater;
  return a == b ? Order::Equal : Order::None;
}

Order order_of_texts(const std::string& a, const std::string& b) {
  const int order = a.compare(b);  // of bytes, which in UTF-8 is that of characters
  return order < 0 ? Order::Less : order > 0 ? Order::Greater : Order::Equal;
}

}  // namespace

Status arithmetic(RunContext& run, Arithmetic op, const Value& a, const Value& b, Value* out) {
  if (a.is(Kind::Undefined)) return run.fail_undefined(a);
  if (op == Arithmetic::Modulo && a.is(Kind::String)) return format_percent(run, a.text(), b, out);
  if (b.is(Kind::Undefined)) return run.fail_undefined(b);
  if (a.is_number() && b.is_number()) return numbers(run, op, a, b, out);
  if (op == Arithmetic::Add && a.kind() == b.kind() && can_repeat(a)) return joined(run, a, b, out);
  if (op == Arithmetic::Multiply && can_repeat(a) && b.is_whole()) {
    return repeated(run, a, b.integer(), out);
  }
  if (op == Arithmetic::Multiply && can_repeat(b) && a.is_whole()) {
    return repeated(run, b, a.integer(), out);
  }
  return run.fail("'%s' cannot be applied to a %s and a %s", sign_of(op), type_name(a),
                  type_name(b));
}

Status negated(RunContext& run, const Value& value, Value* out) {
  if (value.is(Kind::Undefined)) return run.fail_undefined(value);
  if (!value.is_number()) return run.fail("a %s has no sign", type_name(value));
  if (value.is(Kind::Float)) {
    *out = Value::number(-value.number());
    return Code::Ok;
  }
  return integers(run, Arithmetic::Subtract, 0, value.integer(), out);
}

Status order_of(RunContext& run, const Value& a, const Value& b, Order* order) {
  RL_TRY(run.charge(1));
  if (a.is(Kind::Undefined)) return run.fail_undefined(a);
  if (b.is(Kind::Undefined)) return run.fail_undefined(b);
  if (a.is_whole() && b.is_whole()) {
    *order = a.integer() < b.integer()   ? Order::Less
             : a.integer() > b.integer() ? Order::Greater
                                         : Order::Equal;
    return Code::Ok;
  }
  if (a.is_number() && b.is_number()) {
    *order = order_of_numbers(a.number(), b.number());
    return Code::Ok;
  }
  if (a.is(Kind::String) && b.is(Kind::String)) {
    *order = order_of_texts(a.text().bytes(), b.text().bytes());
    return Code::Ok;
  }
  if (a.kind() != b.kind() || !(a.is(Kind::List) || a.is(Kind::Tuple))) {
    return run.fail("a %s and a %s have no order", type_name(a), type_name(b));
  }
  const size_t both = std::min(a.items().size(), b.items().size());
  for (size_t i = 0; i < both; ++i) {
    bool equal = false;
    RL_TRY(check_equal(run, a.items()[i], b.items()[i], &equal));
    if (!equal) return order_of(run, a.items()[i], b.items()[i], order);
  }
  *order = order_of_numbers(static_cast<double>(a.items().size()),
                            static_cast<double>(b.items().size()));
  return Code::Ok;
}

Status check_equal(RunContext& run, const Value& a, const Value& b, bool* equal) {
  RL_TRY(run.charge(std::min(a.weight(), b.weight())));
  *equal = are_equal(a, b);
  return Code::Ok;
}

Status contains(RunContext& run, const Value& haystack, const Value& needle, bool* result) {
  *result = false;
  if (haystack.is(Kind::String)) {
    if (needle.is(Kind::Undefined)) return run.fail_undefined(needle);
    if (!needle.is(Kind::String)) {
      return run.fail("only a str can be in a str, not a %s", type_name(needle));
    }
    RL_TRY(run.charge(haystack.text().size() / 16));
    *result = find_bytes(haystack.text().view(), needle.text().view()) != std::string::npos;
    return Code::Ok;
  }
  if (haystack.is(Kind::Dict)) {
    if (!can_be_key(needle)) return run.fail("a %s cannot be a key", type_name(needle));
    const auto& dict = haystack.as<DictObject>();
    RL_TRY(run.charge(dict.entries.size() / 8));
    *result = dict.find(needle) != nullptr;
    return Code::Ok;
  }
  Ref<ListObject> items;
  RL_TRY(items_of(run, haystack, &items));
  for (const Value& item : items->items) {
    RL_TRY(check_equal(run, item, needle, result));
    if (*result) break;
  }
  return Code::Ok;
}

Status length_of(RunContext& run, const Value& value, size_t* length) {
  if (value.is(Kind::Undefined)) {
    *length = 0;
  } else if (value.is(Kind::String)) {
    RL_TRY(run.charge(value.text().size() / 64));
    *length = count_characters(value.text().view());
  } else if (value.is_items()) {
    *length = value.items().size();
  } else if (value.is(Kind::Dict)) {
    *length = value.as<DictObject>().entries.size();
  } else {
    return run.fail("a %s has no length%s", type_name(value),
                    value.is(Kind::Iterator) ? ": make it a list with the filter 'list'" : "");
  }
  return Code::Ok;
}

Status items_of(RunContext& run, const Value& value, Ref<ListObject>* items) {
  if (value.is_items()) {
    *items = Ref<ListObject>(&value.as<ListObject>());
    return Code::Ok;
  }
  std::vector<Value> made;
  if (value.is(Kind::String)) {
    for (Characters characters(value.text().view()); !characters.at_end();) {
      const size_t start = characters.at();
      characters.next();
      made.emplace_back();
      RL_TRY(run.make_text(value.text().slice(start, characters.at()), &made.back()));
      RL_TRY(run.charge(1));
    }
  } else if (value.is(Kind::Dict)) {
    for (const Entry& entry : value.as<DictObject>().entries) made.push_back(entry.first);
  } else if (value.is(Kind::Iterator)) {
    auto& iterator = value.as<ListObject>();
    made.assign(iterator.items.begin() + static_cast<std::ptrdiff_t>(iterator.next),
                iterator.items.end());
    iterator.next = iterator.items.size();
  } else if (!value.is(Kind::Undefined)) {
    return run.fail("a %s has no items to go through", type_name(value));
  }
  Value list;
  RL_TRY(run.make_items(Kind::List, std::move(made), &list));
  *items = Ref<ListObject>(&list.as<ListObject>());
  return Code::Ok;
}

}  // namespace rushlight::llm
