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
  float best[kLanes], bad[kLanes];
  for (size_t k = 0; k < kLanes; ++k) best[k] = -FLT_MAX, bad[k] = 0.0f;
  const auto take = [&](size_t k, float value) {
    best[k] = value > best[k] ? value : best[k];
    bad[k] += value * 0.0f;  // stays 0 for finite values
  };
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) take(k, x[i + k]);
  }
  for (; i < count; ++i) take(0, x[i]);
  const float maximum = *std::max_element(best, best + kLanes);
  return sum_of_lanes(bad) == 0.0f ? maximum : std::numeric_limits<float>::quiet_NaN();
}

float maximum_of(const float* x, size_t count) {
  float best[kLanes];
  for (size_t k = 0; k < kLanes; ++k) best[k] = x[0];
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) best[k] = x[i + k] > best[k] ? x[i + k] : best[k];
  }
  for (; i < count; ++i) best[0] = x[i] > best[0] ? x[i] : best[0];
  return *std::max_element(best, best + kLanes);
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
