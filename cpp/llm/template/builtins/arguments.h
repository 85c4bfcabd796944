// The arguments of a call of a filter, a test, a method or a function.
#pragma once

#include <initializer_list>
#include <vector>

#include "rushlight/llm/template/values/format.h"
#include "rushlight/llm/template/values/run_context.h"

namespace rushlight::llm {

struct Arguments {
  std::vector<Value> values;
  std::vector<NamedValue> named;
};

// Gives `values` the arguments in the order of `names`; Missing for those that were not passed.
// The first `required` of them must be.
Status bind(RunContext& run, const char* callee, const Arguments& arguments,
            std::initializer_list<const char*> names, Value* values, size_t required = 0);

// An integer argument; `fallback` if it was not passed.
Status integer_argument(RunContext& run, const char* callee, const Value& value, int64_t fallback,
                        int64_t* out);
// A text argument, which must be a str.
Status text_argument(RunContext& run, const char* callee, const Value& value, const Text** out);

}  // namespace rushlight::llm
