// The tokens that may come next and their weights, from which filters take some away. No filter
// sorts the vocabulary: what counts is found by the k-th value, or by selection in one of many
// buckets of equal width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rushlight/core/span.h"

namespace rushlight::llm {

class Candidates {
 public:
  void reserve(size_t vocabulary);

  // The k most probable tokens and those that equal the last one (0: all) with logits above minus
  // infinity; weights are exp((logit - maximum) / temperature). Returns false if there are none.
  bool take(Span<const float> logits, float temperature, size_t k);

  void keep_top_p(float p);
  void keep_min_p(float p);
  void keep_typical(float p);

  // Sorted by token unless a test changed it; weights are not normalised.
  Span<const int32_t> tokens() const { return {tokens_.data(), count_}; }
  Span<const float> weights() const { return {weights_.data(), count_}; }
  double sum() const { return sum_; }
  // The token at this point, in [0, 1), of the cumulated weights.
  int32_t at(double point) const;

 private:
  // The last key, in ascending order of (key, index), that is needed for this weight.
  struct Cut {
    float key;
    size_t index;  // the last one with this key
  };

  Cut cut_at(double weight);
  Cut cut_among(uint32_t* begin, uint32_t* end, double weight) const;
  template <class Keep>
  void keep_if(const Keep& keep);

  size_t count_ = 0;
  double sum_ = 0.0;
  std::vector<int32_t> tokens_;
  std::vector<float> scores_;  // logit / temperature less the greatest: 0 or less
  std::vector<float> weights_;
  std::vector<float> keys_;
  std::vector<uint32_t> order_;
};

}  // namespace rushlight::llm
