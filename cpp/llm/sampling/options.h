// How the next token is chosen. The filters apply in the order of their members here, each to what
// the one before it left, as `transformers` applies them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"

namespace rushlight::llm {

constexpr size_t kMostAlternatives = 20;  // whose log probabilities can be asked for

struct TokenBias {
  int32_t token = 0;
  float bias = 0.0f;
};

struct SamplingOptions {
  // Added to logits; minus infinity excludes a token.
  std::vector<TokenBias> logit_bias;
  // Logits of tokens of the prompt and the output are divided by it, or multiplied if negative.
  float repetition_penalty = 1.0f;
  // Subtracted from logits of tokens of the output: once, and for each time.
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  // DRY: a token that would extend a repetition of more than `dry_allowed_length` tokens loses
  // multiplier * base ^ (length - allowed length). Repetitions are searched in the last `dry_range`
  // tokens of prompt and output (0: in all) and do not reach across breakers.
  float dry_multiplier = 0.0f;
  float dry_base = 1.75f;
  uint32_t dry_allowed_length = 2;
  uint32_t dry_range = 0;
  std::vector<int32_t> dry_breakers;
  // 0, and what is below 1e-6, always takes the most probable token, and the filters below have no
  // effect.
  float temperature = 1.0f;
  uint32_t top_k = 0;      // keeps the k most probable tokens, and those equal to the last; 0: all
  float top_p = 1.0f;      // keeps the most probable tokens that have this probability together
  float min_p = 0.0f;      // keeps tokens of this probability, relative to the most probable one
  float typical_p = 1.0f;  // keeps tokens of typical information that have this probability
  uint64_t seed = 0;
  // How many alternatives the log probabilities list; -1: none are computed.
  int32_t logprobs = -1;

  // Returns InvalidArgument for a value out of range; the message names the option.
  Status check(size_t vocabulary, Message* message) const;
};

}  // namespace rushlight::llm
