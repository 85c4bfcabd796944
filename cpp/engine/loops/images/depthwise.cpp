#include "rushlight/engine/loops/images/depthwise.h"

#include "rushlight/engine/loops/vectors/edge.h"
#include "rushlight/engine/loops/vectors/strides.h"

namespace rushlight::engine::RL_ISA {
namespace {

using namespace ::rushlight::kernels::RL_ISA;

constexpr int kPixels = static_cast<int>(kDepthwisePixels);

// How many rows of results are computed at once: two, which share input rows, if there are enough
// registers for the sums.
#if defined(__AVX512F__) || defined(RL_NEON)
constexpr int rows_at_once(int kernel) noexcept { return kernel == 3 ? 2 : 1; }
#else
constexpr int rows_at_once(int) noexcept { return 1; }
#endif

// What is constant while a tile goes through its channels.
struct Frame {
  StrideMultiples column;
  int64_t seven;  // columns, in bytes
  int64_t row;    // of the input, in bytes
  int64_t tap;    // of the weights, in floats
};

// A kernel: its size, its stride, the edges it checks, and whether its channels end within a
// vector.
template <int K, int S, DepthwiseEdge kEdge, bool kPart>
struct Kernel {
  static constexpr int R = rows_at_once(K);
  static constexpr int kColumns = (kPixels - 1) * S + K;
  static constexpr int kRows = (R - 1) * S + K;
  using Sums = Vec[R][kPixels];

  // Whether column j may lie outside.
  static constexpr bool minds(int j) {
    if (kEdge == DepthwiseEdge::Sides) return j < K - 1 || j > kColumns - K;
    return kEdge == DepthwiseEdge::Any;
  }

  // Adds column J of row Y of the input to every sum that it belongs to, then goes on with column J
  // + 1. `weights` are row Y of the kernel, and the row S before it.
  template <int Y, int J>
  static RL_INLINE void add_columns(const DepthwiseTile& t, const Frame& f, const char* in,
                                    int64_t part, const Vec (&weights)[R][K], Sums& sums) {
    if constexpr (J < kColumns) {
      if (!minds(J) || (t.columns_inside & (1u << J)) != 0) {
        const auto* at = reinterpret_cast<const float*>(f.column.at<J % 7>(in));
        Vec v = kPart ? load_first(at, part) : load(at);
        keep(v);
#pragma GCC unroll 2
        for (int r = 0; r < R; ++r) {
          if (Y < r * S || Y >= r * S + K) continue;
#pragma GCC unroll 8
          for (int p = 0; p < kPixels; ++p) {
            const int tap = J - p * S;
            if (tap >= 0 && tap < K) sums[r][p] += v * weights[r][tap];
          }
        }
      }
      add_columns<Y, J + 1>(t, f, J % 7 == 6 ? in + f.seven : in, part, weights, sums);
    }
  }

  // Adds row Y of the input; row Y of the kernel is at `w`.
  template <int Y>
  static RL_INLINE void add_row(const DepthwiseTile& t, Frame& f, const char* in, const float* w,
                                int64_t part, Sums& sums) {
    f.column.hide();
    Vec weights[R][K];
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int k = 0; k < K; ++k) {
        const bool used = Y >= r * S && Y < r * S + K;
        weights[r][k] = used ? load(w + (k - r * S * K) * f.tap) : Vec{};
      }
    }
    add_columns<Y, 0>(t, f, in, part, weights, sums);
  }

  // Adds row Y of the input and the rows after it. With R == 2, Y decides which sums they belong
  // to.
  template <int Y>
  static RL_INLINE void add_rows(const DepthwiseTile& t, Frame& f, const char* in, const float* w,
                                 int64_t part, Sums& sums) {
    if constexpr (R == 1) {
      for (int y = 0; y < kRows; ++y) {
        if ((t.rows_inside & (1u << y)) != 0) add_row<0>(t, f, in, w, part, sums);
        in += f.row;
        w += K * f.tap;
      }
    } else if constexpr (Y < kRows) {
      if ((t.rows_inside & (1u << Y)) != 0) add_row<Y>(t, f, in, w, part, sums);
      add_rows<Y + 1>(t, f, in + f.row, w + K * f.tap, part, sums);
    }
  }

  static RL_INLINE void store_sums(const DepthwiseTile& t, int64_t c, int64_t part, Sums& sums) {
    const Vec low = splat(t.low);
    const Vec high = splat(t.high);
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r) {
      if (r >= t.rows) break;
      float* out = t.out + r * t.out_row_stride + c;
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) {
        if (kEdge == DepthwiseEdge::Any && p >= t.pixels) break;
        const Vec result = clamp(sums[r][p], low, high);
        if (kPart) {
          store_some(out, result, part);
        } else {
          store(out, result);
        }
        out += t.out_stride;
      }
    }
  }

  static RL_INLINE void run(const DepthwiseTile& t, Frame& f, int64_t c, int64_t part) {
    Vec start = {};
    if (t.bias != nullptr) start = kPart ? load_first(t.bias + c, part) : load(t.bias + c);
    Sums sums;
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) sums[r][p] = start;
    }
    add_rows<0>(t, f, reinterpret_cast<const char*>(t.in + c), t.weights + c, part, sums);
    store_sums(t, c, part, sums);
  }
};

template <int K, int S>
__attribute__((noinline)) void last_channels(const DepthwiseTile& t, Frame f, int64_t c) {
  Kernel<K, S, DepthwiseEdge::Any, true>::run(t, f, c, t.channels - c);
}

template <int K, int S, DepthwiseEdge kEdge>
void tile(const DepthwiseTile& t) {
  Frame f = {StrideMultiples(t.column_stride * 4), t.column_stride * 28, t.row_stride * 4,
             t.tap_stride};
  int64_t c = 0;
  for (; c + kLanes <= t.channels; c += kLanes) {
    Kernel<K, S, kEdge, false>::run(t, f, c, kLanes);
  }
  if (c < t.channels) last_channels<K, S>(t, f, c);
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
    Vec sum = t.bias == nullptr ? Vec{} : load_some(t.bias + c, n);
    for (int64_t y = 0; y < t.taps_y; ++y) {
      for (int64_t x = 0; x < t.taps_x; ++x) {
        const float* in = t.in + y * t.y_stride + x * t.x_stride;
        const Vec weight = load(t.weights + y * t.weights_y_stride + x * t.tap_stride + c);
        if (t.multiplier != 1) {
          sum += weight * load_multiplied(in, t.channel + c, n, t.multiplier);
        } else {
          const float* at = in + t.channel + c;
          sum += weight * load_some(at, n);
        }
      }
    }
    store_some(t.out + c, clamp(sum, splat(t.low), splat(t.high)), n);
  }
}

}  // namespace

// The variant for inner tiles exists only for the most frequent kernel.
#define RL_TILES(K, S, sides) \
  {tile<K, S, DepthwiseEdge::None>, tile<K, S, sides>, tile<K, S, DepthwiseEdge::Any>}

const DepthwiseLoops depthwise_loops = {
    {{RL_TILES(3, 1, DepthwiseEdge::Sides), RL_TILES(3, 2, DepthwiseEdge::Sides)},
     {RL_TILES(5, 1, DepthwiseEdge::Any), RL_TILES(5, 2, DepthwiseEdge::Any)},
     {RL_TILES(7, 1, DepthwiseEdge::Any), {nullptr, nullptr, nullptr}}},
    {rows_at_once(3), rows_at_once(5), rows_at_once(7)},
    point,
};

}  // namespace rushlight::engine::RL_ISA
