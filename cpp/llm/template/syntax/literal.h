// The text of a string in a template, with Python's escapes.
#pragma once

#include <string>

#include "rushlight/core/span.h"

namespace rushlight::llm {

// Appends what the text between the quotation marks means; returns what is wrong with it, or null.
const char* read_literal(StringView literal, std::string* out);

}  // namespace rushlight::llm
