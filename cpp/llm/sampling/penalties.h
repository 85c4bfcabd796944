// What earlier tokens take from the logits of later ones. The work follows the length of the text,
// not the vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rushlight/core/span.h"
#include "rushlight/llm/sampling/options.h"

namespace rushlight::llm {

// The tokens before the one that is chosen; those from `prompt` on are output.
struct History {
  Span<const int32_t> tokens;
  size_t prompt = 0;
};

class Penalties {
 public:
  void reserve(size_t vocabulary, size_t context);
  void apply(const SamplingOptions& options, const History& history, float* logits);

 private:
  void next_mark();
  void apply_repetition(const SamplingOptions& options, const History& history, float* logits);
  void apply_counts(const SamplingOptions& options, const History& history, float* logits);
  void apply_dry(const SamplingOptions& options, const History& history, float* logits);
  size_t dry_limit(const SamplingOptions& options, Span<const int32_t> tokens);

  std::vector<uint32_t> marks_;    // by token: the last pass that saw it
  std::vector<uint32_t> numbers_;  // by token: what that pass knows of it
  std::vector<uint32_t> lengths_;  // by position from the end: see apply_dry()
  uint32_t mark_ = 0;
};

}  // namespace rushlight::llm
