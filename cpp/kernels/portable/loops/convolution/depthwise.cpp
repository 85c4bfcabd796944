#include "rushlight/kernels/portable/loops/convolution/depthwise.h"

#include "rushlight/kernel/loops/vec.h"

namespace rushlight::kernels::RL_ISA {
namespace {

template <int64_t kStride>
inline Vec load_strided(const float* p) {
  return kStride == 1 ? load(p) : load_even(p);
}

// Computes V vectors of a row.
template <int V, int64_t kStride>
void row_piece(const float* in, int64_t line, const float* weights, int taps_y, int taps_x,
               int64_t dilation, float bias, float* out) {
  Vec sums[V];
#pragma GCC unroll 4
  for (int64_t v = 0; v < V; ++v) sums[v] = splat(bias);
  for (int64_t i = 0; i < taps_y; ++i) {
    const float* at = in + i * line;
    for (int64_t j = 0; j < taps_x; ++j) {
      const Vec weight = splat(*weights++);
#pragma GCC unroll 4
      for (int64_t v = 0; v < V; ++v) {
        sums[v] += weight * load_strided<kStride>(at + j * dilation + v * kLanes * kStride);
      }
    }
  }
#pragma GCC unroll 4
  for (int64_t v = 0; v < V; ++v) store(out + v * kLanes, sums[v]);
}

template <int64_t kStride>
void vector_row(const float* in, int64_t line, const float* weights, int taps_y, int taps_x,
                int64_t dilation, float bias, float* out, int64_t n) {
  int64_t x = 0;
  for (; x + 4 * kLanes <= n; x += 4 * kLanes) {
    row_piece<4, kStride>(in + x * kStride, line, weights, taps_y, taps_x, dilation, bias, out + x);
  }
  for (; x + kLanes <= n; x += kLanes) {
    row_piece<1, kStride>(in + x * kStride, line, weights, taps_y, taps_x, dilation, bias, out + x);
  }
  if (x == n) return;
  float rest[kLanes];
  row_piece<1, kStride>(in + x * kStride, line, weights, taps_y, taps_x, dilation, bias, rest);
  for (int64_t i = 0; x + i < n; ++i) out[x + i] = rest[i];
}

void row(const float* in, int64_t line, const float* weights, int taps_y, int taps_x,
         int64_t stride, int64_t dilation, float bias, float* out, int64_t n) {
  if (stride == 1) {
    return vector_row<1>(in, line, weights, taps_y, taps_x, dilation, bias, out, n);
  }
  if (stride == 2) {
    return vector_row<2>(in, line, weights, taps_y, taps_x, dilation, bias, out, n);
  }
  for (int64_t x = 0; x < n; ++x) {
    float sum = bias;
    for (int64_t i = 0; i < taps_y; ++i) {
      for (int64_t j = 0; j < taps_x; ++j) {
        sum += weights[i * taps_x + j] * in[i * line + x * stride + j * dilation];
      }
    }
    out[x] = sum;
  }
}

// Computes the channels c.. of `pixel`: V vectors.
template <int V>
inline void pixel_piece(const float* const* in, const float* weights, int taps, const float* bias,
                        float* out, int64_t n, int64_t c) {
  Vec sums[V];
#pragma GCC unroll 4
  for (int64_t v = 0; v < V; ++v) sums[v] = bias != nullptr ? load(bias + c + v * kLanes) : Vec{};
  for (int64_t t = 0; t < taps; ++t) {
    if (in[t] == nullptr) continue;
#pragma GCC unroll 4
    for (int64_t v = 0; v < V; ++v) {
      sums[v] += load(weights + t * n + c + v * kLanes) * load(in[t] + c + v * kLanes);
    }
  }
#pragma GCC unroll 4
  for (int64_t v = 0; v < V; ++v) store(out + c + v * kLanes, sums[v]);
}

void pixel(const float* const* in, const float* weights, int taps, const float* bias, float* out,
           int64_t n) {
  if (n >= kLanes) {
    int64_t c = 0;
    for (; c + 4 * kLanes <= n; c += 4 * kLanes) {
      pixel_piece<4>(in, weights, taps, bias, out, n, c);
    }
    for (; c + kLanes <= n; c += kLanes) {
      pixel_piece<1>(in, weights, taps, bias, out, n, c);
    }
    // Computes the last channels in a full vector, together with some earlier ones again.
    if (n % kLanes != 0) pixel_piece<1>(in, weights, taps, bias, out, n, n - kLanes);
    return;
  }
  for (int64_t c = 0; c < n; ++c) {
    float sum = bias != nullptr ? bias[c] : 0.0f;
    for (int64_t t = 0; t < taps; ++t) {
      if (in[t] != nullptr) sum += weights[t * n + c] * in[t][c];
    }
    out[c] = sum;
  }
}

}  // namespace

const DepthwiseLoops depthwise_loops = {row, pixel};

}  // namespace rushlight::kernels::RL_ISA
