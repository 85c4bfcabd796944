// Loops over logits against the same in double, for any number of them.
#include "rushlight/llm/sampling/exponentials.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "check.h"
#include "seed.h"

using namespace rushlight::llm;
using namespace rushlight::test;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(std::minstd_rand& engine, size_t count) {
  std::uniform_real_distribution<float> real(-90.0f, 20.0f);
  std::vector<float> x(count);
  for (float& logit : x) logit = real(engine);
  return x;
}

void test_maxima(std::minstd_rand& engine, std::vector<float> x) {
  const float greatest = *std::max_element(x.begin(), x.end());
  CHECK(maximum_of(x.data(), x.size()) == greatest);
  CHECK(finite_maximum(x.data(), x.size()) == greatest);
  float& one = x[engine() % x.size()];
  for (const float bad : {kInf, -kInf, std::nanf("")}) {
    one = bad;
    CHECK(std::isnan(finite_maximum(x.data(), x.size())));
  }
  one = -kInf;
  CHECK(maximum_of(x.data(), x.size()) == *std::max_element(x.begin(), x.end()));
}

void test_sums(const std::vector<float>& x) {
  const float shift = *std::max_element(x.begin(), x.end());
  std::vector<float> weights(x.size());
  double sum = 0.0;
  for (const float logit : x) sum += std::exp(static_cast<double>(logit - shift));
  CHECK(std::abs(sum_of_exponentials(x.data(), x.size(), shift) / sum - 1) < 1e-6);
  CHECK(std::abs(exponentials(x.data(), x.size(), shift, 1.0f, weights.data()) / sum - 1) < 1e-6);
  CHECK(std::abs(sum_of(weights.data(), weights.size()) / sum - 1) < 1e-6);
}

}  // namespace

int main() {
  std::minstd_rand engine(seed_for(1));
  for (size_t count = 1; count < 100; ++count) {
    const std::vector<float> x = random_logits(engine, count);
    test_maxima(engine, x);
    test_sums(x);
  }
  test_sums(random_logits(engine, 5000));
  return check_result();
}
