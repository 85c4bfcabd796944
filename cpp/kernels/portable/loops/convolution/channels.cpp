#include "rushlight/kernels/portable/loops/convolution/channels.h"

#include "rushlight/kernel/loops/vec.h"

namespace rushlight::kernels::RL_ISA {
namespace {

// Rows of the largest tile that stays in registers.
#if defined(__AVX512F__) || defined(RL_NEON)
constexpr int64_t kRows = 8;
#else
constexpr int64_t kRows = 6;
#endif

// Adds the first n lanes, none if n is not positive. Each call sums its own terms first and then
// adds them to the earlier sums, which keeps the error of long sums small.
inline void add_first(float* to, Vec v, int64_t n) {
  v += load(to);
  if (n >= kLanes) return store(to, v);
  if (n > 0) store_first(to, v, n);
}

template <int V, int H>
void tile(const ChannelTile& t) {
  Vec sums[H][V];
#pragma GCC unroll 8
  for (int64_t i = 0; i < H; ++i) {
#pragma GCC unroll 2
    for (int64_t v = 0; v < V; ++v) sums[i][v] = Vec{};
  }
  for (int64_t term = 0; term < t.terms; ++term) {
    const float* a = t.a[term] + t.a_offset;
    const float* b = t.b[term] + t.b_offset;
    for (int64_t k = 0; k < t.k; ++k) {
      Vec row[V];
#pragma GCC unroll 2
      for (int64_t v = 0; v < V; ++v) row[v] = load(b + v * kLanes);
#pragma GCC unroll 8
      for (int64_t i = 0; i < H; ++i) {
        const Factor factor = factor_at(a + i * t.a_row);
#pragma GCC unroll 2
        for (int64_t v = 0; v < V; ++v) sums[i][v] = add_product(sums[i][v], row[v], factor);
      }
      a += t.a_stride;
      b += t.b_stride;
    }
  }
#pragma GCC unroll 8
  for (int64_t i = 0; i < H; ++i) {
#pragma GCC unroll 2
    for (int64_t v = 0; v < V; ++v) {
      add_first(t.sums + i * t.sums_stride + v * kLanes, sums[i][v], t.columns - v * kLanes);
    }
  }
}

template <int T>
void line_of(const float* const* wide, int64_t wide_stride, const float* narrow, int64_t n,
             int64_t channels, float* sums) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    Vec acc[T];
#pragma GCC unroll 9
    for (int64_t t = 0; t < T; ++t) acc[t] = Vec{};
    for (int64_t x = 0; x < n; ++x) {
      const Vec factor = load(narrow + x * channels + c);
#pragma GCC unroll 9
      for (int64_t t = 0; t < T; ++t) acc[t] += factor * load(wide[t] + x * wide_stride + c);
    }
#pragma GCC unroll 9
    for (int64_t t = 0; t < T; ++t) add_first(sums + t * channels + c, acc[t], channels - c);
  }
}

using LineFn = void (*)(const float* const*, int64_t, const float*, int64_t, int64_t, float*);
constexpr LineFn kLine[kMaxLineTaps] = {line_of<1>, line_of<2>, line_of<3>, line_of<4>, line_of<5>,
                                        line_of<6>, line_of<7>, line_of<8>, line_of<9>};

void line(const float* const* wide, int64_t taps, int64_t wide_stride, const float* narrow,
          int64_t n, int64_t channels, float* sums) {
  kLine[taps - 1](wide, wide_stride, narrow, n, channels, sums);
}

}  // namespace

#define RL_TILES(V) \
  {tile<V, 1>, tile<V, 2>, tile<V, 3>, tile<V, 4>, tile<V, 5>, tile<V, 6>, tile<V, 7>, tile<V, 8>}

const ChannelLoops channel_loops = {kLanes, kRows, {RL_TILES(1), RL_TILES(2)}, line};

}  // namespace rushlight::kernels::RL_ISA
