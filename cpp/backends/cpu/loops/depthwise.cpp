#include "rushlight/backends/cpu/loops/depthwise.h"

#include "rushlight/backends/cpu/loops/steps.h"
#include "rushlight/backends/cpu/loops/vec_edge.h"

namespace rushlight::cpu::RL_ISA {
namespace {

using namespace ::rushlight::kernels::RL_ISA;

constexpr int kPixels = static_cast<int>(kDepthwisePixels);

// Nothing of a tile is worth a call.
#define RL_INLINE inline __attribute__((always_inline))

// What stays the same while a tile goes through its channels.
struct Frame {
  Steps column;
  int64_t seven;  // columns, in bytes
  int64_t row;    // of the input, in bytes
  int64_t tap;    // of the weights, in floats
  uint32_t inside;
};

// Adds what column J of the input gives to each of the sums that it belongs to, and goes on.
template <int J, int K, int S, bool kEdge, bool kPart>
RL_INLINE void add_columns(Vec (&sums)[kPixels], const Vec (&weights)[K], const char* in,
                           const Frame& f, int64_t part) {
  constexpr int kColumns = (kPixels - 1) * S + K;
  if constexpr (J < kColumns) {
    if (!kEdge || (f.inside & (1u << J)) != 0) {
      const float* at = f.column.at<J % 7>(in);
      Vec v = kPart ? load_part(at, part) : load(at);
      keep(v);
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) {
        const int tap = J - p * S;
        if (tap >= 0 && tap < K) sums[p] += v * weights[tap];
      }
    }
    const char* next = J % 7 == 6 ? in + f.seven : in;
    add_columns<J + 1, K, S, kEdge, kPart>(sums, weights, next, f, part);
  }
}

template <int K, int S, bool kEdge, bool kPart>
RL_INLINE void channels_at(const DepthwiseTile& t, Frame& f, int64_t c, int64_t part) {
  Vec start = {};
  if (t.bias != nullptr) start = kPart ? load_part(t.bias + c, part) : load(t.bias + c);
  Vec sums[kPixels];
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) sums[p] = start;
  const char* in = reinterpret_cast<const char*>(t.in + c);
  const float* w = t.weights + c;
  for (int64_t y = t.taps_y; y > 0; --y) {
    f.column.hide();
    Vec weights[K];
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) weights[k] = load(w + k * f.tap);
    add_columns<0, K, S, kEdge, kPart>(sums, weights, in, f, part);
    in += f.row;
    w += K * f.tap;
  }
  const Vec low = splat(t.low);
  const Vec high = splat(t.high);
  float* out = t.out + c;
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
    if (kEdge && p >= t.pixels) break;
    const Vec result = clamp(sums[p], low, high);
    if (kPart) {
      store_first(out, result, part);
    } else {
      store(out, result);
    }
    out += t.out_step;
  }
}

template <int K, int S, bool kEdge>
void tile(const DepthwiseTile& t) {
  Frame f = {Steps(t.column_step), t.column_step * 28, t.row_step * 4, t.tap_step, t.inside};
  int64_t c = 0;
  for (; c + kLanes <= t.channels; c += kLanes) channels_at<K, S, kEdge, false>(t, f, c, kLanes);
  if (c < t.channels) channels_at<K, S, true, true>(t, f, c, t.channels - c);
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
    Vec sum = t.bias == nullptr ? Vec{} : (n == kLanes ? load(t.bias + c) : load_part(t.bias + c, n));
    for (int64_t y = 0; y < t.taps_y; ++y) {
      for (int64_t x = 0; x < t.taps_x; ++x) {
        const float* in = t.in + y * t.y_step + x * t.x_step;
        const Vec weight = load(t.weights + y * t.weights_y_step + x * t.tap_step + c);
        if (t.multiplier != 1) {
          sum += weight * load_multiplied(in, t.channel + c, n, t.multiplier);
        } else {
          const float* at = in + t.channel + c;
          sum += weight * (n == kLanes ? load(at) : load_part(at, n));
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
