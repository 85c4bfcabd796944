// Attributes, items and slices of values, and calls of their methods.
#pragma once

#include "rushlight/llm/template/builtins/arguments.h"

namespace rushlight::llm {

// `value.name` and `value[key]`. What is not there is undefined, for the reason `why`, which must
// outlive the run.
Status get_attribute(RunContext& run, const Value& value, const std::string& name, const char* why,
                     Value* out);
Status get_item(RunContext& run, const Value& value, const Value& key, const char* why, Value* out);
// The parts are integers, None or Missing.
Status get_slice(RunContext& run, const Value& value, const Value parts[3], Value* out);

// Filters name attributes by a path: "function.name" or "items.0".
Status get_path(RunContext& run, const Value& value, const Value& path, Value* out);

Status call_method(RunContext& run, const MethodObject& method, const Arguments& arguments,
                   Value* out);
Status next_of_cycle(RunContext& run, ListObject& cycler, Value* out);

}  // namespace rushlight::llm
