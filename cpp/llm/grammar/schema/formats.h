// The values of JSON schema's `format` that are kept, as regular expressions.
#pragma once

#include "rushlight/core/span.h"

namespace rushlight::llm::grammar {

// Null for a format that is not known.
const char* format_pattern(StringView name);
// "date-time, time, …", for errors.
const char* format_names();

}  // namespace rushlight::llm::grammar
