#include <executorch/extension/llm/sampler/sampler.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <vector>

namespace executorch::extension::llm {
namespace {

// The logits become probabilities. Sums are in the elements' type, so that a seed draws the tokens
// that it draws in ExecuTorch.
template <typename T>
void softmax(T* values, int32_t count, float inverse_temperature) {
  for (int32_t i = 0; i < count; ++i) values[i] = static_cast<T>(values[i] * inverse_temperature);
  const T greatest = *std::max_element(values, values + count);
  T sum = static_cast<T>(0.0f);
  for (int32_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>(std::exp(static_cast<float>(values[i] - greatest)));
    sum = static_cast<T>(sum + values[i]);
  }
  for (int32_t i = 0; i < count; ++i) values[i] = static_cast<T>(values[i] / sum);
}

}  // namespace

Sampler::Sampler(int32_t vocab_size, float temperature, float topp, unsigned long long rng_seed)
    : vocab_size_(vocab_size),
      inverse_temperature_(temperature != 0.0f ? 1.0f / temperature : 0.0f),
      topp_(topp),
      state_(rng_seed) {}

Sampler::Sampler(int32_t vocab_size, float temperature)
    : Sampler(vocab_size, temperature, kTopp, static_cast<unsigned long long>(std::time(nullptr))) {
}

// A number from 0 on and below 1, by the generator xorshift64*.
float Sampler::next_coin() {
  state_ ^= state_ >> 12;
  state_ ^= state_ << 25;
  state_ ^= state_ >> 27;
  const auto bits = static_cast<uint32_t>((state_ * 0x2545F4914F6CDD1DULL) >> 32);
  return static_cast<float>(bits >> 8) / 16777216.0f;
}

template <typename T>
int32_t Sampler::greatest(const T* logits) const {
  return static_cast<int32_t>(std::max_element(logits, logits + vocab_size_) - logits);
}

template <typename T>
int32_t Sampler::draw_from_all(const T* probabilities, float coin) const {
  T sum = static_cast<T>(0.0f);
  for (int32_t i = 0; i < vocab_size_; ++i) {
    sum = static_cast<T>(sum + probabilities[i]);
    if (coin < static_cast<float>(sum)) return i;
  }
  return vocab_size_ - 1;  // the sum was rounded
}

template <typename T>
int32_t Sampler::draw_from_top(const T* probabilities, float coin) const {
  // What is less probable than this is none of the kept ones.
  const float least = (1.0f - topp_) / static_cast<float>(vocab_size_ - 1);
  std::vector<ProbIndex<T>> kept;
  for (int32_t i = 0; i < vocab_size_; ++i) {
    if (static_cast<float>(probabilities[i]) >= least) kept.push_back({probabilities[i], i});
  }
  if (kept.empty()) return greatest(probabilities);
  std::sort(kept.begin(), kept.end(),
            [](const ProbIndex<T>& a, const ProbIndex<T>& b) { return a.prob > b.prob; });
  T sum = static_cast<T>(0.0f);
  size_t count = 0;
  while (count < kept.size()) {
    sum = static_cast<T>(sum + kept[count++].prob);
    if (static_cast<float>(sum) > topp_) break;
  }
  const T wanted = static_cast<T>(coin * static_cast<float>(sum));
  T reached = static_cast<T>(0.0f);
  for (size_t i = 0; i < count; ++i) {
    reached = static_cast<T>(reached + kept[i].prob);
    if (wanted < reached) return kept[i].index;
  }
  return kept[count - 1].index;
}

template <typename T>
int32_t Sampler::sample(T* logits) {
  if (inverse_temperature_ == 0.0f) return greatest(logits);
  softmax(logits, vocab_size_, inverse_temperature_);
  const float coin = next_coin();
  const bool keeps_all = topp_ <= 0.0f || topp_ >= 1.0f || vocab_size_ == 1;
  return keeps_all ? draw_from_all(logits, coin) : draw_from_top(logits, coin);
}

template int32_t Sampler::sample<float>(float*);
template int32_t Sampler::sample<aten::Half>(aten::Half*);
template int32_t Sampler::sample<aten::BFloat16>(aten::BFloat16*);

}  // namespace executorch::extension::llm
