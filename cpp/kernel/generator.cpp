#include "rushlight/kernel/generator.h"

namespace rushlight {
namespace {

constexpr uint32_t kShift = 397;  // words from one to the one it is mixed with

uint32_t twist(uint32_t word, uint32_t next) {
  const uint32_t joined = (word & 0x80000000U) | (next & 0x7fffffffU);
  return (joined >> 1) ^ ((next & 1U) != 0 ? 0x9908b0dfU : 0U);
}

}  // namespace

void Generator::manual_seed(uint64_t seed) {
  words_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kWords; ++i) {
    words_[i] = 1812433253U * (words_[i - 1] ^ (words_[i - 1] >> 30)) + i;
  }
  next_ = kWords;
  has_spare_ = 0;
  spare_ = 0.0;
}

void Generator::refill() {
  constexpr uint32_t kRest = kWords - kShift;
  for (uint32_t i = 0; i < kRest; ++i) {
    words_[i] = words_[i + kShift] ^ twist(words_[i], words_[i + 1]);
  }
  for (uint32_t i = kRest; i < kWords - 1; ++i) {
    words_[i] = words_[i - kRest] ^ twist(words_[i], words_[i + 1]);
  }
  words_[kWords - 1] = words_[kShift - 1] ^ twist(words_[kWords - 1], words_[0]);
  next_ = 0;
}

}  // namespace rushlight
