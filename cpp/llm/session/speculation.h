// Speculation without a second model: what followed the last few tokens when they stood in the text
// before is proposed to follow again, and verified in one step. How many tokens are proposed
// follows how many were right; where it does not pay, nothing is proposed for a while.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/span.h"

namespace rushlight::llm {

constexpr size_t kMostGuesses = 8;

// Writes up to `most` tokens that followed the longest earlier occurrence of the end of `tokens`
// (of two that are equal, the later one); returns how many. An occurrence has two tokens at least.
size_t guess_next(Span<const int32_t> tokens, size_t most, int32_t* guesses);

class Speculation {
 public:
  // At most so many tokens a step; 0 is never.
  void open(size_t most);
  size_t propose(Span<const int32_t> tokens, size_t most, int32_t* guesses);
  // What became of the last proposal. Steps without one count, too: call it for every step.
  void learn(size_t proposed, size_t accepted);

 private:
  size_t most_ = 0;
  size_t width_ = 0;       // how many tokens are proposed now
  uint32_t pause_ = 0;     // steps without proposals that are left
  uint32_t failures_ = 0;  // in a row, each of which makes the pause longer
  float gain_ = 1.0f;      // accepted of proposed tokens, averaged over steps
};

}  // namespace rushlight::llm
