// Normalisers: what is done to a text before it is split into words.
#pragma once

#include "rushlight/core/span.h"
#include "rushlight/llm/tokenizer/operations.h"
#include "rushlight/llm/tokenizer/scratch.h"
#include "rushlight/llm/tokenizer/table.h"

namespace rushlight::llm {

// The normalised text: `text` itself, or in a buffer of `scratch` until the next call.
StringView normalize(const Table& table, StringView text, Scratch* scratch);

}  // namespace rushlight::llm
