#include "rushlight/llm/template/builtins/arguments.h"

#include <algorithm>

namespace rushlight::llm {

Status bind(RunContext& run, const char* callee, const Arguments& arguments,
            std::initializer_list<const char*> names, Value* values, size_t required) {
  std::fill(values, values + names.size(), Value::missing());
  if (arguments.values.size() > names.size()) {
    return run.fail("'%s' takes at most %zu arguments, got %zu", callee, names.size(),
                    arguments.values.size());
  }
  std::copy(arguments.values.begin(), arguments.values.end(), values);
  for (const NamedValue& named : arguments.named) {
    const auto* name =
        std::find_if(names.begin(), names.end(), [&](const char* n) { return named.first == n; });
    if (name == names.end()) {
      return run.fail("'%s' has no argument '%s'", callee, named.first.c_str());
    }
    Value& value = values[name - names.begin()];
    if (!value.is(Kind::Missing)) {
      return run.fail("'%s' has two values for the argument '%s'", callee, *name);
    }
    value = named.second;
  }
  for (size_t i = 0; i < required; ++i) {
    if (values[i].is(Kind::Missing)) {
      return run.fail("'%s' needs the argument '%s'", callee, names.begin()[i]);
    }
  }
  return Code::Ok;
}

Status integer_argument(RunContext& run, const char* callee, const Value& value, int64_t fallback,
                        int64_t* out) {
  *out = value.is(Kind::Missing) ? fallback : value.integer();
  if (value.is(Kind::Missing) || value.is_whole()) return Code::Ok;
  if (value.is(Kind::Undefined)) return run.fail_undefined(value);
  return run.fail("'%s' needs an int, not a %s", callee, type_name(value));
}

Status text_argument(RunContext& run, const char* callee, const Value& value, const Text** out) {
  if (value.is(Kind::Undefined)) return run.fail_undefined(value);
  if (!value.is(Kind::String)) {
    return run.fail("'%s' needs a str, not a %s", callee, type_name(value));
  }
  *out = &value.text();
  return Code::Ok;
}

}  // namespace rushlight::llm
