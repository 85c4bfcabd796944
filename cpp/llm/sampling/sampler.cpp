#include "rushlight/llm/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rushlight/llm/sampling/exponentials.h"
#include "rushlight/llm/sampling/random.h"

namespace rushlight::llm {
namespace {

constexpr float kExcluded = -std::numeric_limits<float>::infinity();
constexpr float kLeastTemperature = 1e-6f;  // logits divided by less may be infinite

void apply_mask(const uint32_t* mask, Span<float> logits) {
  for (size_t i = 0; i < logits.size(); i += 32) {
    const uint32_t bits = mask[i / 32];
    if (bits == UINT32_MAX) continue;
    const size_t end = std::min(logits.size(), i + 32);
    for (size_t k = i; k < end; ++k) {
      if ((bits >> (k - i) & 1) == 0) logits[k] = kExcluded;
    }
  }
}

int32_t most_probable(Span<const float> logits) {
  const float maximum = maximum_of(logits.data(), logits.size());
  return static_cast<int32_t>(std::find(logits.begin(), logits.end(), maximum) - logits.begin());
}

bool comes_before(const TokenLogprob& a, const TokenLogprob& b) {
  return a.logprob != b.logprob ? a.logprob > b.logprob : a.token < b.token;
}

}  // namespace

void Sampler::reserve(size_t vocabulary, size_t context) {
  penalties_.reserve(vocabulary, context);
  candidates_.reserve(vocabulary);
  measured_.resize(vocabulary);
}

// Writes the most probable tokens, and keeps the logits for the probability of the chosen one.
void Sampler::list_top(Span<const float> logits, float maximum, int32_t alternatives,
                       Drawn* drawn) {
  std::copy(logits.begin(), logits.end(), measured_.begin());
  const double sum = sum_of_exponentials(logits.data(), logits.size(), maximum);
  const float shift = maximum + static_cast<float>(std::log(sum));
  shift_ = shift;
  const size_t wanted = std::min<size_t>(static_cast<size_t>(alternatives), logits.size());
  if (wanted == 0) return;
  TokenLogprob* top = drawn->top;
  for (size_t i = 0; i < logits.size(); ++i) {
    const TokenLogprob entry = {static_cast<int32_t>(i), logits[i] - shift};
    if (drawn->n_top == wanted && !comes_before(entry, top[wanted - 1])) continue;
    size_t at = drawn->n_top < wanted ? drawn->n_top++ : wanted - 1;
    for (; at > 0 && comes_before(entry, top[at - 1]); --at) top[at] = top[at - 1];
    top[at] = entry;
  }
}

Status Sampler::start(Span<const float> logits, const History& history,
                      const SamplingOptions& options, Drawn* drawn, Message* message) {
  const float maximum = finite_maximum(logits.data(), logits.size());
  if (std::isnan(maximum)) {
    return message->fail(Code::InvalidState,
                         "the model's logits for token %zu of the text are NaN or infinite: its "
                         "weights are damaged, or it overflows in its number format",
                         history.tokens.size());
  }
  drawn->logprob = 0.0f;
  drawn->n_top = 0;
  if (options.logprobs >= 0) list_top(logits, maximum, options.logprobs, drawn);
  return {};
}

float Sampler::logprob_of(int32_t token) const {
  return measured_[static_cast<size_t>(token)] - shift_;
}

Status Sampler::measure(Span<const float> logits, const History& history,
                        const SamplingOptions& options, Drawn* drawn, Message* message) {
  if (options.logprobs < 0) return {};
  RL_TRY(start(logits, history, options, drawn, message));
  drawn->logprob = logprob_of(drawn->token);
  return {};
}

Status Sampler::sample(Span<float> logits, const uint32_t* mask, const History& history,
                       const SamplingOptions& options, Draw draw, Drawn* drawn, Message* message) {
  RL_TRY(start(logits, history, options, drawn, message));
  if (mask != nullptr) apply_mask(mask, logits);
  for (const TokenBias& bias : options.logit_bias) logits[bias.token] += bias.bias;
  penalties_.apply(options, history, logits.data());
  if (options.temperature < kLeastTemperature) {
    drawn->token = most_probable(logits);
    if (logits[drawn->token] == kExcluded) drawn->token = -1;
  } else if (candidates_.take(logits, options.temperature, options.top_k)) {
    candidates_.keep_top_p(options.top_p);
    candidates_.keep_min_p(options.min_p);
    candidates_.keep_typical(options.typical_p);
    drawn->token = candidates_.at(uniform(options.seed, draw.stream, draw.index));
  } else {
    drawn->token = -1;
  }
  if (drawn->token >= 0) {
    if (options.logprobs >= 0) drawn->logprob = logprob_of(drawn->token);
    return {};
  }
  return message->fail(Code::InvalidState,
                       "no token may come next: logit_bias and the grammar exclude all of them");
}

}  // namespace rushlight::llm
