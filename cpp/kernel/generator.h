// The state of random operators: a Mersenne Twister, seeded and drawn from as PyTorch's generator
// for the CPU is, so that a program draws what eager draws from the same seed.
//
// Algorithm: M. Matsumoto and T. Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed
// uniform pseudo-random number generator", ACM TOMACS 8 (1998); seeding of their version of 2002.
#pragma once

#include <cstdint>

namespace rushlight {

// A plain value: a copy of it, or of its bytes, draws what the original would have drawn.
class Generator {
 public:
  // What torch.Generator() starts from.
  static constexpr uint64_t kDefaultSeed = 67280421310721;

  explicit Generator(uint64_t seed = kDefaultSeed) { manual_seed(seed); }

  // As torch.manual_seed: draws start anew. Only the low 32 bits of a seed matter.
  void manual_seed(uint64_t seed);

  uint32_t random() {
    if (next_ == kWords) refill();
    uint32_t y = words_[next_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680U;
    y ^= (y << 15) & 0xefc60000U;
    return y ^ (y >> 18);
  }
  // The first draw is the upper half.
  uint64_t random64() {
    const uint64_t high = random();
    return high << 32 | random();
  }

  // Whether this is a state that draws can lead to: bytes from elsewhere may be none.
  bool valid() const { return next_ <= kWords && has_spare_ <= 1; }

  // A normal variate that was made with another one and is the next to be given out.
  bool take_spare(double* value) {
    *value = spare_;
    const bool had = has_spare_ != 0;
    has_spare_ = 0;
    return had;
  }
  void keep_spare(double value) {
    spare_ = value;
    has_spare_ = 1;
  }

 private:
  static constexpr uint32_t kWords = 624;
  void refill();

  uint32_t words_[kWords];
  uint32_t next_;
  uint32_t has_spare_;  // 0 or 1
  double spare_;
};

}  // namespace rushlight
