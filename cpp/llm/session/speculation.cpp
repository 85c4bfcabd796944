#include "rushlight/llm/session/speculation.h"

#include <algorithm>

namespace rushlight::llm {
namespace {

constexpr size_t kLongestMatch = 16;
constexpr size_t kShortestMatch = 2;
// A guessed token costs a part of a step of its own; below this share of right ones it does not
// pay.
constexpr float kLeastGain = 0.25f;
constexpr float kNewWeight = 0.2f;  // of the last step in the average
constexpr uint32_t kFirstPause = 16;
constexpr uint32_t kMostFailures = 5;

}  // namespace

size_t guess_next(Span<const int32_t> tokens, size_t most, int32_t* guesses) {
  const size_t count = tokens.size();
  size_t best = kShortestMatch - 1, after = count;
  for (size_t end = count - std::min<size_t>(count, 1); end > 0; --end) {
    const size_t longest = std::min(kLongestMatch, end);
    size_t length = 0;
    while (length < longest && tokens[end - 1 - length] == tokens[count - 1 - length]) ++length;
    if (length <= best) continue;
    best = length;
    after = end;
    if (length == kLongestMatch) break;
  }
  const size_t count_after = std::min(most, count - after);
  std::copy(tokens.begin() + after, tokens.begin() + after + count_after, guesses);
  return count_after;
}

void Speculation::open(size_t most) {
  *this = Speculation();
  most_ = std::min(most, kMostGuesses);
  width_ = std::min<size_t>(most_, 4);
}

size_t Speculation::propose(Span<const int32_t> tokens, size_t most, int32_t* guesses) {
  if (pause_ > 0 || most_ == 0) return 0;
  return guess_next(tokens, std::min(most, width_), guesses);
}

void Speculation::learn(size_t proposed, size_t accepted) {
  if (proposed == 0) {
    if (pause_ > 0) --pause_;
    return;
  }
  const float share = static_cast<float>(accepted) / static_cast<float>(proposed);
  gain_ += kNewWeight * (share - gain_);
  width_ = accepted == proposed ? std::min(most_, width_ * 2) : std::max<size_t>(accepted, 1);
  if (gain_ >= kLeastGain) {
    if (share > 0.5f) failures_ = 0;
    return;
  }
  pause_ = kFirstPause << std::min(failures_++, kMostFailures);
  gain_ = 2 * kLeastGain;  // the next trial ends soon if it fails
}

}  // namespace rushlight::llm
