// Mixes numbers into a hash.
#pragma once

#include <cstdint>

namespace rushlight::llm::grammar {

inline uint64_t mix(uint64_t hash, uint64_t number) {
  hash = (hash ^ number) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

}  // namespace rushlight::llm::grammar
