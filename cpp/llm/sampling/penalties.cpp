#include "rushlight/llm/sampling/penalties.h"

#include <algorithm>
#include <cmath>

namespace rushlight::llm {

void Penalties::reserve(size_t vocabulary, size_t context) {
  marks_.assign(vocabulary, 0);
  numbers_.resize(vocabulary);
  lengths_.reserve(context + 1);
}

void Penalties::next_mark() {
  if (++mark_ != 0) return;
  std::fill(marks_.begin(), marks_.end(), 0);
  mark_ = 1;
}

void Penalties::apply(const SamplingOptions& options, const History& history, float* logits) {
  if (options.repetition_penalty != 1.0f) apply_repetition(options, history, logits);
  if (options.presence_penalty != 0.0f || options.frequency_penalty != 0.0f) {
    apply_counts(options, history, logits);
  }
  if (options.dry_multiplier > 0.0f) apply_dry(options, history, logits);
}

void Penalties::apply_repetition(const SamplingOptions& options, const History& history,
                                 float* logits) {
  next_mark();
  for (const int32_t token : history.tokens) {
    if (marks_[token] == mark_) continue;
    marks_[token] = mark_;
    float& logit = logits[token];
    logit = logit < 0.0f ? logit * options.repetition_penalty : logit / options.repetition_penalty;
  }
}

void Penalties::apply_counts(const SamplingOptions& options, const History& history,
                             float* logits) {
  next_mark();
  for (size_t i = history.prompt; i < history.tokens.size(); ++i) {
    const int32_t token = history.tokens[i];
    logits[token] -= options.frequency_penalty;
    if (marks_[token] == mark_) continue;
    marks_[token] = mark_;
    logits[token] -= options.presence_penalty;
  }
}

// How far a repetition can reach back from the end: to the last breaker.
size_t Penalties::dry_limit(const SamplingOptions& options, Span<const int32_t> tokens) {
  next_mark();
  for (const int32_t token : options.dry_breakers) marks_[token] = mark_;
  size_t limit = 0;
  while (limit < tokens.size() && marks_[tokens[tokens.size() - 1 - limit]] != mark_) ++limit;
  return limit;
}

// For each earlier place whose last tokens are those of the end, the token that followed there
// would extend the repetition. The lengths of all repetitions are found in one pass, by the Z
// algorithm over the tokens read backwards.
void Penalties::apply_dry(const SamplingOptions& options, const History& history, float* logits) {
  Span<const int32_t> tokens = history.tokens;
  if (options.dry_range > 0 && tokens.size() > options.dry_range) {
    tokens = {tokens.end() - options.dry_range, options.dry_range};
  }
  const size_t count = tokens.size(), limit = dry_limit(options, tokens);
  const auto back = [&](size_t i) { return tokens[count - 1 - i]; };
  lengths_.assign(count, 0);
  next_mark();
  size_t left = 0, right = 0;  // the window of the match that reaches farthest back
  for (size_t i = 1; i < count; ++i) {
    size_t length = i < right ? std::min<size_t>(right - i, lengths_[i - left]) : 0;
    while (i + length < count && back(length) == back(i + length)) ++length;
    if (i + length > right) left = i, right = i + length;
    lengths_[i] = static_cast<uint32_t>(length);
    length = std::min(length, limit);
    if (length == 0 || length < options.dry_allowed_length) continue;
    const int32_t next = back(i - 1);
    if (marks_[next] != mark_) marks_[next] = mark_, numbers_[next] = 0;
    const auto number = static_cast<uint32_t>(length);
    if (number <= numbers_[next]) continue;
    const auto loss = [&](uint32_t n) {
      const float power = static_cast<float>(n) - static_cast<float>(options.dry_allowed_length);
      return n == 0 ? 0.0f
                    : std::min(1e30f, options.dry_multiplier * std::pow(options.dry_base, power));
    };
    logits[next] -= loss(number) - loss(numbers_[next]);
    numbers_[next] = number;
  }
}

}  // namespace rushlight::llm
