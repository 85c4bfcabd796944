#include "rushlight/backends/cpu/loops/depthwise.h"

#include "rushlight/backends/cpu/loops/vec_edge.h"

namespace rushlight::cpu::RL_ISA {
namespace {

using namespace ::rushlight::kernels::RL_ISA;

constexpr int kPixels = static_cast<int>(kDepthwisePixels);

// Adds what column J of the input gives to each of the sums that it belongs to, and goes on.
template <int J, int K, int S, bool kEdge, bool kPart>
inline void add_columns(Vec (&sums)[kPixels], const Vec (&weights)[K], const float* in,
                        const DepthwiseTile& t, int64_t part) {
  constexpr int kColumns = (kPixels - 1) * S + K;
  if constexpr (J < kColumns) {
    if (!kEdge || (t.inside >> J & 1) != 0) {
      const float* at = in + J * t.column_step;
      const Vec v = kPart ? load_first(at, part) : load(at);
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) {
        const int tap = J - p * S;
        if (tap >= 0 && tap < K) sums[p] += v * weights[tap];
      }
    }
    add_columns<J + 1, K, S, kEdge, kPart>(sums, weights, in, t, part);
  }
}

template <int K, int S, bool kEdge, bool kPart>
inline void channels_at(const DepthwiseTile& t, int64_t c, int64_t part) {
  Vec start = {};
  if (t.bias != nullptr) start = kPart ? load_first(t.bias + c, part) : load(t.bias + c);
  Vec sums[kPixels];
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) sums[p] = start;
  const float* in = t.in + c;
  const float* w = t.weights + c;
  for (int64_t y = 0; y < t.taps_y; ++y) {
    Vec weights[K];
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) weights[k] = load(w + k * t.tap_step);
    add_columns<0, K, S, kEdge, kPart>(sums, weights, in, t, part);
    in += t.row_step;
    w += K * t.tap_step;
  }
  const Vec low = splat(t.low);
  const Vec high = splat(t.high);
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
    if (kEdge && p >= t.pixels) break;
    float* out = t.out + p * t.out_step + c;
    const Vec result = clamp(sums[p], low, high);
    if (kPart) {
      store_first(out, result, part);
    } else {
      store(out, result);
    }
  }
}

template <int K, int S, bool kEdge>
void tile(const DepthwiseTile& t) {
  int64_t c = 0;
  for (; c + kLanes <= t.channels; c += kLanes) channels_at<K, S, kEdge, false>(t, c, kLanes);
  if (c < t.channels) channels_at<K, S, true, true>(t, c, t.channels - c);
}

// The channels of the input that lanes from channel c of the result on read.
inline Vec load_multiplied(const float* in, int64_t c, int64_t n, int64_t multiplier) {
  Vec v = {};
  for (int64_t i = 0; i < n; ++i) v[i] = in[(c + i) / multiplier];
  return v;
}

void point(const DepthwisePoint& t) {
  for (int64_t c = 0; c < t.channels; c += kLanes) {
    const int64_t n = t.channels - c < kLanes ? t.channels - c : kLanes;
    Vec sum = t.bias == nullptr ? Vec{} : (n == kLanes ? load(t.bias + c) : load_first(t.bias + c, n));
    for (int64_t y = 0; y < t.taps_y; ++y) {
      for (int64_t x = 0; x < t.taps_x; ++x) {
        const float* in = t.in + y * t.y_step + x * t.x_step;
        const Vec weight = load(t.weights + y * t.weights_y_step + x * t.tap_step + c);
        if (t.multiplier != 1) {
          sum += weight * load_multiplied(in, t.channel + c, n, t.multiplier);
        } else {
          const float* at = in + t.channel + c;
          sum += weight * (n == kLanes ? load(at) : load_first(at, n));
        }
      }
    }
    store_first(t.out + c, clamp(sum, splat(t.low), splat(t.high)), n);
  }
}

}  // namespace

const DepthwiseLoops depthwise_loops = {
    {{tile<3, 1, false>, tile<3, 2, false>},
     {tile<5, 1, false>, tile<5, 2, false>},
     {tile<7, 1, false>, nullptr}},
    {{tile<3, 1, true>, tile<3, 2, true>},
     {tile<5, 1, true>, tile<5, 2, true>},
     {tile<7, 1, true>, nullptr}},
    point,
};

}  // namespace rushlight::cpu::RL_ISA
