#include "rushlight/llm/sampling/exponentials.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace rushlight::llm {
namespace {

constexpr size_t kLanes = 16;
constexpr size_t kBlock = 1024;  // whose sum is taken in float

// exp(x) for x <= 0, within 2 units of the last place: 2^n times a polynomial (Cephes).
inline float exponential(float x) {
  const float kept = x < -87.0f ? -87.0f : x;
  const float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float n = (kept * 1.44269504f + magic) - magic;
  const float r = (kept - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const int32_t power = (static_cast<int32_t>(n) + 127) << 23;
  float two_to_n;
  std::memcpy(&two_to_n, &power, sizeof(two_to_n));
  const float result = p * two_to_n;
  return x < -87.0f ? 0.0f : result;
}

// Compilers make scalars of a loop over lanes that compares them.
using Four = float __attribute__((vector_size(16)));
constexpr size_t kFours = kLanes / 4;

Four splat(float x) { return Four{x, x, x, x}; }
Four greater(Four a, Four b) { return a > b ? a : b; }

// Calls take(v, four) for all numbers, v below kFours; with those that are left, one by one.
template <class Take>
inline void for_fours(const float* x, size_t count, const Take& take) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t v = 0; v < kFours; ++v) {
      Four four;
      std::memcpy(&four, x + i + 4 * v, sizeof(four));
      take(v, four);
    }
  }
  for (; i < count; ++i) take(0, splat(x[i]));
}

float greatest_of(const Four (&fours)[kFours]) {
  Four best = fours[0];
  for (size_t v = 1; v < kFours; ++v) best = greater(fours[v], best);
  return std::max(std::max(best[0], best[1]), std::max(best[2], best[3]));
}

template <class Lanes>
float sum_of_lanes(const Lanes& lanes) {
  float sum = 0.0f;
  for (const float lane : lanes) sum += lane;
  return sum;
}

template <class Weight>
double sum_blocks(size_t count, const Weight& weight) {
  double sum = 0.0;
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t end = std::min(count, begin + kBlock);
    float lanes[kLanes] = {};
    size_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (size_t k = 0; k < kLanes; ++k) lanes[k] += weight(i + k);
    }
    for (; i < end; ++i) lanes[0] += weight(i);
    sum += static_cast<double>(sum_of_lanes(lanes));
  }
  return sum;
}

}  // namespace

float finite_maximum(const float* x, size_t count) {
  Four best[kFours], bad[kFours];
  for (size_t v = 0; v < kFours; ++v) best[v] = splat(-FLT_MAX), bad[v] = Four{};
  for_fours(x, count, [&](size_t v, Four four) {
    best[v] = greater(four, best[v]);
    bad[v] += four * 0.0f;  // stays 0 for finite values
  });
  const Four all = (bad[0] + bad[1]) + (bad[2] + bad[3]);
  const bool is_finite = all[0] + all[1] + all[2] + all[3] == 0.0f;
  return is_finite ? greatest_of(best) : std::numeric_limits<float>::quiet_NaN();
}

float maximum_of(const float* x, size_t count) {
  Four best[kFours];
  for (size_t v = 0; v < kFours; ++v) best[v] = splat(x[0]);
  for_fours(x, count, [&](size_t v, Four four) { best[v] = greater(four, best[v]); });
  return greatest_of(best);
}

double exponentials(const float* x, size_t count, float shift, float scale, float* weights) {
  return sum_blocks(count, [=](size_t i) {
    const float weight = exponential((x[i] - shift) * scale);
    weights[i] = weight;
    return weight;
  });
}

double sum_of(const float* weights, size_t count) {
  return sum_blocks(count, [=](size_t i) { return weights[i]; });
}

double sum_of_exponentials(const float* x, size_t count, float shift) {
  return sum_blocks(count, [=](size_t i) { return exponential(x[i] - shift); });
}

}  // namespace rushlight::llm
