// Values as text: Python's str and repr, and JSON.
#pragma once

#include <string>

#include "rushlight/llm/json/value.h"
#include "rushlight/llm/template/values/run_context.h"

namespace rushlight::llm {

// Python's str(value); nothing for an undefined value, as Jinja prints it.
Status to_text(RunContext& run, const Value& value, Text* out);

// Python's repr of a text.
std::string quoted(StringView text);

// `has_data`: whether some of the value came from the variables.
Status to_json(RunContext& run, const Value& value, JsonValue* out, bool* has_data);

// The value that a variable has.
Status from_json(RunContext& run, const JsonValue& json, bool is_data, Value* out);

}  // namespace rushlight::llm
