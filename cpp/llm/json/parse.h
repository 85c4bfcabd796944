// Reads JSON (RFC 8259). The text may come from anyone: it must be valid UTF-8, and neither its
// nesting nor its size is trusted.
#pragma once

#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/llm/json/value.h"

namespace rushlight::llm {

struct JsonLimits {
  size_t depth = 128;  // arrays and objects inside each other
  size_t bytes = size_t{1} << 26;
  size_t values = size_t{1} << 20;
};

// Of a key that stands twice in an object, the last value counts, at the place of the first, as in
// Python. Errors name line and column.
Result<JsonValue> parse_json(StringView text, Message* message, const JsonLimits& limits = {});

}  // namespace rushlight::llm
