#include "rushlight/llm/sampling/random.h"

namespace rushlight::llm {
namespace {

void round(uint32_t (&x)[4], uint32_t key0, uint32_t key1) {
  const uint64_t a = uint64_t{0xD2511F53} * x[0], b = uint64_t{0xCD9E8D57} * x[2];
  const uint32_t next[] = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key0, static_cast<uint32_t>(b),
                           static_cast<uint32_t>(a >> 32) ^ x[3] ^ key1, static_cast<uint32_t>(a)};
  for (int i = 0; i < 4; ++i) x[i] = next[i];
}

}  // namespace

Philox philox(uint64_t counter_low, uint64_t counter_high, uint64_t key) {
  uint32_t x[] = {static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
                  static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)};
  uint32_t key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int i = 0; i < 10; ++i) {
    round(x, key0, key1);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return {{x[0], x[1], x[2], x[3]}};
}

double uniform(uint64_t seed, uint64_t stream, uint64_t index) {
  const Philox block = philox(index, stream, seed);
  const uint64_t bits = uint64_t{block.words[1]} << 32 | block.words[0];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace rushlight::llm
