// Python's two ways to format text: `"%s" % value` and `"{}".format(value)`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rushlight/llm/template/values/run_context.h"

namespace rushlight::llm {

// `value` is what stands after %: a tuple has several values, a dict named ones.
Status format_percent(RunContext& run, const Text& format, const Value& value, Value* out);

using NamedValue = std::pair<std::string, Value>;
Status format_braces(RunContext& run, const Text& format, const std::vector<Value>& values,
                     const std::vector<NamedValue>& named, Value* out);

}  // namespace rushlight::llm
