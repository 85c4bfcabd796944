// Chooses the next token from the logits of a step. One sampler serves many texts in turns: it
// keeps memory to work in, and nothing else, from one call to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/llm/sampling/candidates.h"
#include "rushlight/llm/sampling/options.h"
#include "rushlight/llm/sampling/penalties.h"

namespace rushlight::llm {

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0.0f;  // of the model's own distribution, before any option
};

// A chosen token.
struct Drawn {
  int32_t token = 0;
  float logprob = 0.0f;  // 0 unless asked for
  TokenLogprob top[kMostAlternatives];
  size_t n_top = 0;
};

// Which random number a token is drawn with.
struct Draw {
  uint64_t stream = 0;  // the texts of one request have different streams
  uint64_t index = 0;   // of the token in the text
};

class Sampler {
 public:
  void reserve(size_t vocabulary, size_t context);

  // `mask` has a bit for each token that a grammar allows; nullptr allows all. Changes `logits`.
  // Returns InvalidState for logits that are not finite, or if no token is left.
  Status sample(Span<float> logits, const uint32_t* mask, const History& history,
                const SamplingOptions& options, Draw draw, Drawn* drawn, Message* message);

  // For a token that must come next, in drawn->token: its log probability, if options ask for it.
  // Returns InvalidState for logits that are not finite then.
  Status measure(Span<const float> logits, const History& history, const SamplingOptions& options,
                 Drawn* drawn, Message* message);

  // The tokens and weights that the last sample() with a temperature drew from.
  const Candidates& candidates() const { return candidates_; }

 private:
  Status start(Span<const float> logits, const History& history, const SamplingOptions& options,
               Drawn* drawn, Message* message);
  float logprob_of(int32_t token) const;
  void list_top(Span<const float> logits, float maximum, int32_t alternatives, Drawn* drawn);

  Penalties penalties_;
  Candidates candidates_;
  std::vector<float> measured_;  // the model's own logits
  float shift_ = 0.0f;           // a logit less this is a log probability
};

}  // namespace rushlight::llm
