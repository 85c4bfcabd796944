// The functions that every template can call.
#include <utility>

#include "rushlight/llm/template/builtins/clock.h"
#include "rushlight/llm/template/builtins/tables.h"
#include "rushlight/llm/template/values/operators.h"
#include "rushlight/llm/template/values/print.h"

namespace rushlight::llm {
namespace {

constexpr int64_t kMostRange = 100000;  // items of a range, as Jinja's sandbox has it

Status raise_exception(RunContext& run, const Arguments& arguments, Value*) {
  Value part;
  RL_TRY(bind(run, "raise_exception", arguments, {"message"}, &part, 1));
  Text text;
  RL_TRY(to_text(run, part, &text));
  return run.fail("%s", text.bytes().c_str());
}

Status strftime_now(RunContext& run, const Arguments& arguments, Value* out) {
  Value part;
  RL_TRY(bind(run, "strftime_now", arguments, {"format"}, &part, 1));
  const Text* format = nullptr;
  RL_TRY(text_argument(run, "strftime_now", part, &format));
  std::string text;
  if (!format_time(format->view(), run.now, &text)) {
    return run.fail("'strftime_now' does not support '%s'", text.c_str());
  }
  return run.make_text(Text(std::move(text)), out);
}

Status range(RunContext& run, const Arguments& arguments, Value* out) {
  Value parts[3];
  RL_TRY(bind(run, "range", arguments, {"start", "stop", "step"}, parts, 1));
  int64_t start = 0, stop = 0, stride = 1;
  const bool has_start = !parts[1].is(Kind::Missing);
  RL_TRY(integer_argument(run, "range", parts[has_start ? 1 : 0], 0, &stop));
  if (has_start) RL_TRY(integer_argument(run, "range", parts[0], 0, &start));
  RL_TRY(integer_argument(run, "range", parts[2], 1, &stride));
  if (stride == 0) return run.fail("'range' has a third argument of 0");
  std::vector<Value> items;
  for (int64_t i = start; stride > 0 ? i < stop : i > stop;) {
    if (items.size() == static_cast<size_t>(kMostRange)) {
      return run.fail("'range' has more than %lld items", static_cast<long long>(kMostRange));
    }
    items.push_back(Value::integer(i));
    if (__builtin_add_overflow(i, stride, &i)) break;
  }
  return run.make_items(Kind::Range, std::move(items), out);
}

// The entries of dict(…) and namespace(…): those of a dict or of pairs, and named ones.
Status entries_of(RunContext& run, const char* callee, const Arguments& arguments,
                  std::vector<Entry>* entries) {
  if (arguments.values.size() > 1) return run.fail("'%s' takes one value", callee);
  DictObject made;
  if (!arguments.values.empty() && arguments.values[0].is(Kind::Dict)) {
    made.entries = arguments.values[0].as<DictObject>().entries;
  } else if (!arguments.values.empty()) {
    Ref<ListObject> pairs;
    RL_TRY(items_of(run, arguments.values[0], &pairs));
    for (const Value& pair : pairs->items) {
      const bool fits = pair.is_items() && pair.items().size() == 2 && can_be_key(pair.items()[0]);
      if (!fits) return run.fail("'%s' takes a dict, or pairs of a key and a value", callee);
      RL_TRY(run.charge(1 + made.entries.size() / 4));
      made.set(pair.items()[0], pair.items()[1]);
    }
  }
  for (const NamedValue& named : arguments.named) {
    made.set(string_value({named.first.data(), named.first.size()}), named.second);
  }
  *entries = std::move(made.entries);
  return Code::Ok;
}

Status dict(RunContext& run, const Arguments& arguments, Value* out) {
  std::vector<Entry> entries;
  RL_TRY(entries_of(run, "dict", arguments, &entries));
  return run.make_dict(std::move(entries), out);
}

Status make_namespace(RunContext& run, const Arguments& arguments, Value* out) {
  Ref<DictObject> space = make_ref<DictObject>();
  RL_TRY(run.charge(4));
  RL_TRY(entries_of(run, "namespace", arguments, &space->entries));
  for (const Entry& entry : space->entries) {
    if (entry.first.is(Kind::String) && entry.first.text().bytes().compare(0, 1, "_") == 0) {
      return run.fail("a name in a namespace must not begin with '_': '%s'",
                      entry.first.text().bytes().c_str());
    }
  }
  run.keep(space);
  *out = Value::object(Kind::Namespace, space);
  return Code::Ok;
}

Status cycler(RunContext& run, const Arguments& arguments, Value* out) {
  if (arguments.values.empty()) return run.fail("'cycler' needs an argument");
  if (!arguments.named.empty()) return run.fail("'cycler' takes no arguments with names");
  return run.make_items(Kind::Cycler, arguments.values, out);
}

Status joiner(RunContext& run, const Arguments& arguments, Value* out) {
  Value separator;
  RL_TRY(bind(run, "joiner", arguments, {"sep"}, &separator));
  if (separator.is(Kind::Missing)) separator = string_value(", ");
  return run.make_items(Kind::Joiner, {separator}, out);
}

constexpr Function kFunctions[] = {
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
    {"range", range},
    {"dict", dict},
    {"namespace", make_namespace},
    {"cycler", cycler},
    {"joiner", joiner},
};

}  // namespace

Span<const Function> functions() { return kFunctions; }

}  // namespace rushlight::llm
