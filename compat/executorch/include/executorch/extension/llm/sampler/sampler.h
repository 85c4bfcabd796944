// Draws the next token from logits.
#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstdint>

namespace executorch::extension::llm {

constexpr float kTopp = 0.9f;

template <typename T>
struct ProbIndex {
  T prob;
  int32_t index;
};

class Sampler {
 public:
  // A temperature of 0 always takes the greatest logit. `topp` keeps the most probable tokens that
  // have more than this probability together; 0, and 1 or more, keep all.
  Sampler(int32_t vocab_size, float temperature, float topp, unsigned long long rng_seed);
  // With kTopp, and a seed of the time.
  Sampler(int32_t vocab_size, float temperature);

  // `logits` has vocab_size elements (float, Half or BFloat16), which are changed unless the
  // temperature is 0.
  template <typename T>
  int32_t sample(T* logits);

 private:
  template <typename T>
  int32_t greatest(const T* logits) const;
  template <typename T>
  int32_t draw_from_all(const T* probabilities, float coin) const;
  template <typename T>
  int32_t draw_from_top(const T* probabilities, float coin) const;
  float next_coin();

  int32_t vocab_size_;
  float inverse_temperature_;  // 0: the greatest logit is taken
  float topp_;
  unsigned long long state_;
};

}  // namespace executorch::extension::llm

namespace executorch::llm {
using ::executorch::extension::llm::ProbIndex;
using ::executorch::extension::llm::Sampler;
}  // namespace executorch::llm

namespace torch::executor {
using ::executorch::extension::llm::ProbIndex;
using ::executorch::extension::llm::Sampler;
}  // namespace torch::executor
