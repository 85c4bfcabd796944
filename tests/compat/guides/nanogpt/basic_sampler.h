// Takes the most probable token; the interface of the sampler that the guide downloads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

class BasicSampler {
 public:
  int64_t sample(const std::vector<float>& logits) {
    return std::max_element(logits.begin(), logits.end()) - logits.begin();
  }
};
