// The tables that codegen/characters.py writes: facts and case mappings of all characters.
#pragma once

#include <cstdint>

#include "rushlight/core/span.h"

namespace rushlight::llm {

// Every `stride`-th character from `first` to `last` maps to the one at this difference.
struct CaseRun {
  uint32_t first, last, stride;
  int32_t difference;
};

// A character that maps to two or three; 0 ends them.
struct CaseExpansion {
  uint32_t code;
  uint32_t to[3];
};

struct CaseTable {
  Span<const CaseRun> runs;
  Span<const CaseExpansion> expansions;
};

// Each run's first character, shifted by 8, with its flags (characters.h).
extern const Span<const uint32_t> kCharacterRuns;
extern const CaseTable kUpperTable;
extern const CaseTable kLowerTable;
extern const CaseTable kTitleTable;

}  // namespace rushlight::llm
