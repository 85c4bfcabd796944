// Byte pair encoding without merges. Tokens are those of a word if each is what its own text
// becomes, and if no two beside each other would be joined: a merge that joins two of them would
// come about in these two alone. So the longest token is taken that the one before it allows, and
// where none is, the one before it was wrong, and must be shorter.
#pragma once

#include <cstdint>
#include <vector>

#include "rushlight/core/span.h"
#include "rushlight/llm/tokenizer/scratch.h"
#include "rushlight/llm/tokenizer/table.h"

namespace rushlight::llm {

// Appends the tokens of a word. False, and nothing is appended: the table has no trie of tokens, or
// the word has symbols that are not in it, or that would take long. `identity` is that of the
// tokenizer in the caches.
bool encode_longest(const Table& table, uint32_t identity, StringView word, Scratch* scratch,
                    std::vector<int32_t>* out);

}  // namespace rushlight::llm
