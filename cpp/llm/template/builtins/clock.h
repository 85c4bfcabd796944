// The time of day for templates, as Python's datetime.now().strftime writes it in the C locale.
#pragma once

#include <cstdint>
#include <string>

#include "rushlight/core/span.h"

namespace rushlight::llm {

// `seconds` since 1970 in local time; the clock's time if it is negative. Returns false, and the
// directive in `out`, for one that is not supported.
bool format_time(StringView format, int64_t seconds, std::string* out);

}  // namespace rushlight::llm
