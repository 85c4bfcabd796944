// The alternatives of which the regular expressions of pre-tokenizers are made, matched by hand. A
// pattern is a list of them, tried in order at each position; Python recognises them by their text
// (src/rushlight/llm/tokenizer/patterns.py) and refuses any other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/span.h"

namespace rushlight::llm {

enum class Alternative : uint8_t {
  Contraction,          // 's|'t|'re|'ve|'m|'ll|'d
  AnyCaseContraction,   // (?i:'s|'t|'re|'ve|'m|'ll|'d)
  SpaceLetters,         // " ?\p{L}+"
  SpaceNumbers,         // " ?\p{N}+"
  SpaceOthers,          // " ?[^\s\p{L}\p{N}]+"
  SpaceOthersLines,     // " ?[^\s\p{L}\p{N}]+[\r\n]*"
  SpaceOthersPaths,     // " ?[^\s\p{L}\p{N}]+[\r\n/]*"
  PrefixLetters,        // "[^\r\n\p{L}\p{N}]?\p{L}+"
  PrefixLettersMarks,   // "[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+"
  SpaceOthersNoMarks,   // " ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
  PrefixLowerWord,      // o200k's first: upper case letters, then lower case ones, contraction
  PrefixUpperWord,      // o200k's second: at least one upper case letter, contraction
  PrefixLowerWordOnly,  // the same two without the contraction
  PrefixUpperWordOnly,
  OneNumber,         // \p{N}
  ThreeNumbers,      // \p{N}{1,3}
  Lines,             // \s*[\r\n]+
  SpacesBeforeText,  // \s+(?!\S)
  SpacesAtEnd,       // \s+$
  Spaces,            // \s+
  OneSpace,          // \s
};
constexpr uint8_t kAlternatives = static_cast<uint8_t>(Alternative::OneSpace) + 1;

// The end of the match of the first alternative that matches `text` at `start` < text.size(), or
// `start` if none does. Looks only at what follows.
size_t match_pattern(Span<const uint8_t> alternatives, StringView text, size_t start);

}  // namespace rushlight::llm
