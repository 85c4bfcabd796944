// Text with U+FFFD for bytes that are not UTF-8.
#pragma once

#include <string>

#include "rushlight/core/span.h"

namespace rushlight::llm {

// Appends `text` to `out` with its invalid bytes replaced. With `keep_cut`, a character that the
// end of the text cuts is left out. Returns how many bytes of `text` were read.
size_t append_repaired(StringView text, bool keep_cut, std::string* out);

bool is_utf8(StringView text);

}  // namespace rushlight::llm
