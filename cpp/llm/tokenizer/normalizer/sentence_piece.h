// SentencePiece's own normaliser: its map of characters, and white space as U+2581.
#pragma once

#include <cstdint>
#include <string>

#include "rushlight/core/span.h"
#include "rushlight/llm/tokenizer/letters.h"
#include "rushlight/llm/tokenizer/table.h"

namespace rushlight::llm {

// Appends the normalised text; `flags` are those of operations.h.
void sentence_piece(const Table& table, uint32_t flags, StringView text, std::string* out);

// The same as letters. Where the text is not the last of some parts, the next one begins with a
// space.
void sentence_piece(const Table& table, uint32_t flags, StringView text, bool is_last,
                    Letters* out);

}  // namespace rushlight::llm
