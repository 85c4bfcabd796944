#include "rushlight/llm/sampling/candidates.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <functional>

#include "rushlight/llm/sampling/exponentials.h"

namespace rushlight::llm {
namespace {

constexpr size_t kBuckets = 2048;
constexpr float kBucketsPerUnit = 64.0f;  // the last bucket has all keys from 32 on
constexpr size_t kBlock = 1024;
constexpr size_t kFewest = 256;  // up to this k a heap beats a selection
constexpr size_t kGroup = 16;

size_t bucket_of(float key) {
  const float at = key * kBucketsPerUnit;
  return at < static_cast<float>(kBuckets - 1) ? static_cast<size_t>(at) : kBuckets - 1;
}

// The k-th greatest value, 1 <= k <= count. `scratch` has room for `count` values.
float kth_greatest(const float* x, size_t count, size_t k, float* scratch) {
  if (k > kFewest) {
    std::copy(x, x + count, scratch);
    std::nth_element(scratch, scratch + (k - 1), scratch + count, std::greater<float>());
    return scratch[k - 1];
  }
  std::copy(x, x + k, scratch);
  std::make_heap(scratch, scratch + k, std::greater<float>());
  for (size_t i = k; i < count; ++i) {
    if (x[i] <= scratch[0]) continue;
    std::pop_heap(scratch, scratch + k, std::greater<float>());
    scratch[k - 1] = x[i];
    std::push_heap(scratch, scratch + k, std::greater<float>());
  }
  return scratch[0];
}

// Calls move(to, from) for all `from` below `count` that are kept, with `to` from 0 on; returns how
// many there are. Groups of which none or all are kept, as most are, become vectors; others are
// moved without branches, which would be mispredicted.
template <class Keep, class Move>
size_t compact(size_t count, const Keep& keep, const Move& move) {
  size_t to = 0;
  for (size_t begin = 0; begin < count; begin += kGroup) {
    const size_t end = std::min(count, begin + kGroup);
    size_t kept = 0;
    for (size_t i = begin; i < end; ++i) kept += keep(i) ? 1 : 0;
    if (kept == 0) continue;
    if (kept == kGroup) {
      for (size_t i = 0; i < kGroup; ++i) move(to + i, begin + i);
      to += kGroup;
      continue;
    }
    for (size_t i = begin; i < end; ++i) {
      const bool is_kept = keep(i);
      move(to, i);
      to += is_kept ? 1 : 0;
    }
  }
  return to;
}

}  // namespace

void Candidates::reserve(size_t vocabulary) {
  tokens_.resize(vocabulary);
  scores_.resize(vocabulary);
  weights_.resize(vocabulary);
  keys_.resize(vocabulary);
  order_.resize(vocabulary);
}

bool Candidates::take(Span<const float> logits, float temperature, size_t k) {
  const float maximum = maximum_of(logits.data(), logits.size());
  if (maximum < -FLT_MAX) return false;
  float least = -FLT_MAX;
  if (k > 0 && k < logits.size()) {
    least = std::max(least, kth_greatest(logits.data(), logits.size(), k, keys_.data()));
  }
  const float* const all = logits.data();
  int32_t* const tokens = tokens_.data();
  float* const scores = scores_.data();
  count_ = compact(
      logits.size(), [=](size_t i) { return all[i] >= least; },
      [=](size_t to, size_t from) {
        tokens[to] = static_cast<int32_t>(from);
        scores[to] = all[from];
      });
  const float scale = 1.0f / temperature;
  for (size_t i = 0; i < count_; ++i) scores_[i] = (scores_[i] - maximum) * scale;
  sum_ = exponentials(scores_.data(), count_, 0.0f, 1.0f, weights_.data());
  return true;
}

template <class Keep>
void Candidates::keep_if(const Keep& keep) {
  int32_t* const tokens = tokens_.data();
  float* const scores = scores_.data();
  float* const weights = weights_.data();
  count_ = compact(count_, keep, [=](size_t to, size_t from) {
    tokens[to] = tokens[from];
    scores[to] = scores[from];
    weights[to] = weights[from];
  });
  sum_ = sum_of(weights_.data(), count_);
}

void Candidates::keep_min_p(float p) {
  if (p <= 0.0f) return;
  keep_if([p, weights = weights_.data()](size_t i) {
    return weights[i] >= p;
  });  // the most probable token weighs 1
}

Candidates::Cut Candidates::cut_at(double weight) {
  double sums[kBuckets] = {};
  for (size_t i = 0; i < count_; ++i) sums[bucket_of(keys_[i])] += static_cast<double>(weights_[i]);
  double before = 0.0;
  size_t bucket = 0, last = 0;
  for (size_t b = 0; b < kBuckets; ++b) last = sums[b] > 0.0 ? b : last;
  while (bucket < last && before + sums[bucket] < weight) before += sums[bucket++];
  size_t n = 0;
  for (size_t i = 0; i < count_; ++i) {
    order_[n] = static_cast<uint32_t>(i);
    n += bucket_of(keys_[i]) == bucket ? 1 : 0;
  }
  return cut_among(order_.data(), order_.data() + n, weight - before);
}

// The cut is among these candidates: the half that it is in is halved again.
Candidates::Cut Candidates::cut_among(uint32_t* begin, uint32_t* end, double weight) const {
  const auto comes_before = [&](uint32_t a, uint32_t b) {
    return keys_[a] != keys_[b] ? keys_[a] < keys_[b] : a < b;
  };
  while (end - begin > 1) {
    uint32_t* const middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, comes_before);
    double half = 0.0;
    for (const uint32_t* i = begin; i < middle; ++i) half += static_cast<double>(weights_[*i]);
    if (half < weight) {
      weight -= half;
      begin = middle;
    } else {
      end = middle;
    }
  }
  return {keys_[*begin], *begin};
}

void Candidates::keep_top_p(float p) {
  if (p >= 1.0f) return;
  const double wanted = static_cast<double>(p) * sum_;
  // All tokens below this weight together are less than what may go.
  const auto least = static_cast<float>((sum_ - wanted) / static_cast<double>(count_));
  keep_if([least, weights = weights_.data()](size_t i) { return weights[i] >= least; });
  for (size_t i = 0; i < count_; ++i) keys_[i] = -scores_[i];
  const Cut cut = cut_at(wanted);
  keep_if([&](size_t i) { return keys_[i] < cut.key || (keys_[i] == cut.key && i <= cut.index); });
}

// Locally typical sampling: the tokens whose information is closest to the entropy.
void Candidates::keep_typical(float p) {
  if (p >= 1.0f) return;
  double expected = 0.0;
  for (size_t i = 0; i < count_; ++i) {
    if (weights_[i] > 0.0f) {  // the score of another may be -infinity
      expected += static_cast<double>(weights_[i]) * static_cast<double>(scores_[i]);
    }
  }
  // How far a token's information is from the entropy is how far its score is from the mean.
  const auto mean = static_cast<float>(expected / sum_);
  for (size_t i = 0; i < count_; ++i) keys_[i] = std::fabs(scores_[i] - mean);
  const Cut cut = cut_at(static_cast<double>(p) * sum_);
  keep_if([&](size_t i) { return keys_[i] <= cut.key; });
}

int32_t Candidates::at(double point) const {
  const double wanted = point * sum_;
  double before = 0.0;
  size_t i = 0;
  for (; i + kBlock < count_; i += kBlock) {
    const double block = sum_of(weights_.data() + i, kBlock);
    if (before + block > wanted) break;
    before += block;
  }
  for (; i + 1 < count_; ++i) {
    before += static_cast<double>(weights_[i]);
    if (before > wanted) break;
  }
  return tokens_[i];
}

}  // namespace rushlight::llm
