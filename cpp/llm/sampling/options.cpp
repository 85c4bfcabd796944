#include "rushlight/llm/sampling/options.h"

#include <cmath>

namespace rushlight::llm {
namespace {

struct Range {
  const char* name;
  float value;
  float low, high;
  bool without_low;  // the lowest value is not allowed
};

bool is_within(const Range& range) {
  return range.value <= range.high &&
         (range.without_low ? range.value > range.low : range.value >= range.low);
}

Status check_tokens(const char* name, int32_t token, size_t vocabulary, Message* message) {
  if (token >= 0 && static_cast<size_t>(token) < vocabulary) return {};
  return message->fail(Code::InvalidArgument,
                       "%s names token %d; the model has the tokens 0 to %zu", name,
                       static_cast<int>(token), vocabulary - 1);
}

}  // namespace

Status SamplingOptions::check(size_t vocabulary, Message* message) const {
  const float most = 1e6f, least = 1e-6f;  // logits stay finite
  const Range ranges[] = {
      {"temperature", temperature, 0.0f, most, false},
      {"top_p", top_p, 0.0f, 1.0f, true},
      {"min_p", min_p, 0.0f, 1.0f, false},
      {"typical_p", typical_p, 0.0f, 1.0f, true},
      {"repetition_penalty", repetition_penalty, least, most, false},
      {"presence_penalty", presence_penalty, -most, most, false},
      {"frequency_penalty", frequency_penalty, -most, most, false},
      {"dry_multiplier", dry_multiplier, 0.0f, most, false},
      {"dry_base", dry_base, 1.0f, most, false},
  };
  for (const Range& range : ranges) {
    if (is_within(range)) continue;
    return message->fail(Code::InvalidArgument, "%s is %g; it must be %s %g and at most %g",
                         range.name, static_cast<double>(range.value),
                         range.without_low ? "above" : "at least", static_cast<double>(range.low),
                         static_cast<double>(range.high));
  }
  if (logprobs < -1 || logprobs > static_cast<int32_t>(kMostAlternatives)) {
    return message->fail(Code::InvalidArgument,
                         "logprobs asks for %d alternatives; from 0 to %zu can be listed",
                         static_cast<int>(logprobs), kMostAlternatives);
  }
  for (const TokenBias& bias : logit_bias) {
    RL_TRY(check_tokens("logit_bias", bias.token, vocabulary, message));
    if (std::isnan(bias.bias) || bias.bias > most) {
      return message->fail(
          Code::InvalidArgument, "logit_bias of token %d is %g; it must be a number up to %g",
          static_cast<int>(bias.token), static_cast<double>(bias.bias), static_cast<double>(most));
    }
  }
  for (const int32_t token : dry_breakers) {
    RL_TRY(check_tokens("dry_breakers", token, vocabulary, message));
  }
  return {};
}

}  // namespace rushlight::llm
