#include "rushlight/engine/kernels/rows/moments.h"

#include <cmath>

namespace rushlight::engine {
namespace {

struct Moments {
  double mean, factor;
};

// at(i) is element i of `count`.
template <typename At>
Moments moments_of(int64_t count, bool rms, float epsilon, At at) {
  double mean = 0;
  for (int64_t i = 0; !rms && i < count; ++i) mean += at(i);
  mean /= static_cast<double>(count);
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) squares += (at(i) - mean) * (at(i) - mean);
  const double variance = squares / static_cast<double>(count);
  return {mean, 1.0 / std::sqrt(variance + static_cast<double>(epsilon))};
}

float affine(double x, const Moments& moments, const float* scale, const float* shift, int64_t i) {
  const double normalized = (x - moments.mean) * moments.factor;
  return static_cast<float>(normalized * (scale != nullptr ? static_cast<double>(scale[i]) : 1.0) +
                            (shift != nullptr ? static_cast<double>(shift[i]) : 0.0));
}

}  // namespace

double exact_sum(const float* x, int64_t n, int64_t stride) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += static_cast<double>(x[i * stride]);
  return total;
}

void normalize_exactly(const Norm& norm, int64_t row) {
  const float* const x = norm.in + row * norm.width;
  float* const out = norm.out + row * norm.width;
  const Moments moments = moments_of(norm.width, norm.rms, norm.epsilon,
                                     [=](int64_t i) { return static_cast<double>(x[i]); });
  for (int64_t i = 0; i < norm.width; ++i) {
    out[i] = affine(static_cast<double>(x[i]), moments, norm.scale, norm.shift, i);
  }
}

void normalize_exactly(const GroupNorm& norm, const float* in, float* out, int64_t first_channel,
                       int64_t channel_stride, int64_t stride) {
  const int64_t channels = norm.channels / norm.groups;
  const auto place = [=](int64_t i) {
    return i / norm.space * channel_stride + i % norm.space * stride;
  };
  const int64_t count = channels * norm.space;
  const Moments moments = moments_of(count, false, norm.epsilon,
                                     [=](int64_t i) { return static_cast<double>(in[place(i)]); });
  for (int64_t i = 0; i < count; ++i) {
    out[place(i)] = affine(static_cast<double>(in[place(i)]), moments, norm.scale, norm.shift,
                           first_channel + i / norm.space);
  }
}

}  // namespace rushlight::engine
