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

}  // namespace

void Candidates::reserve(size_t vocabulary) {
  tokens_.resize(vocabulary);
  scores_.resize(vocabulary);
  weights_.resize(vocabulary);
  keys_.resize(vocabulary);
  order_.resize(vocabulary);
}

bool Candidates::take(Span<const float> logits, float temperature) {
  const float maximum = maximum_of(logits.data(), logits.size());
  if (maximum < -FLT_MAX) return false;
  count_ = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    tokens_[count_] = static_cast<int32_t>(i);
    scores_[count_] = logits[i];
    count_ += logits[i] >= -FLT_MAX ? 1 : 0;
  }
  const float scale = 1.0f / temperature;
  for (size_t i = 0; i < count_; ++i) scores_[i] = (scores_[i] - maximum) * scale;
  sum_ = exponentials(scores_.data(), count_, 0.0f, 1.0f, weights_.data());
  return true;
}

template <class Keep>
void Candidates::keep_if(const Keep& keep) {
  size_t kept = 0;
  sum_ = 0.0;
  for (size_t i = 0; i < count_; ++i) {
    if (!keep(i)) continue;
    tokens_[kept] = tokens_[i];
    scores_[kept] = scores_[i];
    weights_[kept] = weights_[i];
    sum_ += static_cast<double>(weights_[i]);
    ++kept;
  }
  count_ = kept;
}

void Candidates::keep_top_k(size_t k) {
  if (k == 0 || k >= count_) return;
  const float least = kth_greatest(scores_.data(), count_, k, keys_.data());
  keep_if([&](size_t i) { return scores_[i] >= least; });
}

void Candidates::keep_min_p(float p) {
  if (p <= 0.0f) return;
  float greatest = 0.0f;
  for (size_t i = 0; i < count_; ++i) greatest = std::max(greatest, weights_[i]);
  const float least = p * greatest;
  keep_if([&](size_t i) { return weights_[i] >= least; });
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
    if (bucket_of(keys_[i]) == bucket) order_[n++] = static_cast<uint32_t>(i);
  }
  std::sort(
      order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(n),
      [&](uint32_t a, uint32_t b) { return keys_[a] != keys_[b] ? keys_[a] < keys_[b] : a < b; });
  size_t i = 0;
  while (i + 1 < n && before + static_cast<double>(weights_[order_[i]]) < weight) {
    before += static_cast<double>(weights_[order_[i++]]);
  }
  return {keys_[order_[i]], order_[i]};
}

void Candidates::keep_top_p(float p) {
  if (p >= 1.0f) return;
  for (size_t i = 0; i < count_; ++i) keys_[i] = -scores_[i];
  const Cut cut = cut_at(static_cast<double>(p) * sum_);
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
