#include "rushlight/engine/loops/products/adapter.h"

#include "rushlight/engine/loops/vectors/edge.h"

namespace rushlight::engine::RL_ISA {
namespace {

using namespace ::rushlight::kernels::RL_ISA;

#if defined(__AVX512F__) || defined(RL_NEON)
constexpr int kRows = 4;
#else
constexpr int kRows = 2;
#endif
static_assert(kRows <= kMostAdapterRows, "the tables are too small");
constexpr int kRanks = 4;  // of a tile
constexpr int kVectors = kPanel / kLanes;

template <typename W>
inline const W* at(const void* weights, int64_t i) {
  return static_cast<const W*>(weights) + i;
}

// H rows and R ranks from `rank` on. Each sum has a vector of its own, so that the tile's size does
// not change it.
template <int H, int R, typename W>
inline void down_tile(const AdapterDown& t, int64_t rank) {
  Vec sums[H][R] = {};
  const W* a = at<W>(t.a, rank * t.a_stride);
  for (int64_t j = 0; j < t.depth; j += kLanes) {
    Vec x[H];
#pragma GCC unroll 4
    for (int i = 0; i < H; ++i) x[i] = load_some(t.x + i * t.x_stride + j, t.depth - j);
#pragma GCC unroll 4
    for (int k = 0; k < R; ++k) {
      const Vec right = load_weights(a + k * t.a_stride + j);
#pragma GCC unroll 4
      for (int i = 0; i < H; ++i) sums[i][k] += x[i] * right;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < H; ++i) {
#pragma GCC unroll 4
    for (int k = 0; k < R; ++k) t.out[i * t.out_stride + rank + k] = sum_lanes(sums[i][k]);
  }
}

template <int H, typename W>
void down(const AdapterDown& t) {
  int64_t rank = 0;
  for (; rank + kRanks <= t.ranks; rank += kRanks) down_tile<H, kRanks, W>(t, rank);
  for (; rank < t.ranks; ++rank) down_tile<H, 1, W>(t, rank);
}

template <int H, typename W>
void up(const AdapterUp& t) {
  const W* b = at<W>(t.b, 0);
  for (int64_t column = 0; column < t.columns; column += kPanel) {
    Vec sums[H][kVectors] = {};
    for (int64_t k = 0; k < t.ranks; ++k) {
      Vec right[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) right[v] = load_weights(b + v * kLanes);
      b += kPanel;
#pragma GCC unroll 4
      for (int i = 0; i < H; ++i) {
        const Factor factor = factor_at(t.h + i * t.h_stride + k);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[i][v] = add_product(sums[i][v], right[v], factor);
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < H; ++i) {
      float* y = t.y + i * t.y_stride + column;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const int64_t left = t.columns - column - v * kLanes;
        if (left > 0)
          store_some(y + v * kLanes, load_some(y + v * kLanes, left) + sums[i][v], left);
      }
    }
  }
}

// nullptr for more rows than there are registers for.
template <int H, typename W>
constexpr AdapterDownFn down_of() noexcept {
  if constexpr (H <= kRows) return down<H, W>;
  return nullptr;
}
template <int H, typename W>
constexpr AdapterUpFn up_of() noexcept {
  if constexpr (H <= kRows) return up<H, W>;
  return nullptr;
}

#define RL_DOWN(W) {down_of<1, W>(), down_of<2, W>(), down_of<3, W>(), down_of<4, W>()}
#define RL_UP(W) {up_of<1, W>(), up_of<2, W>(), up_of<3, W>(), up_of<4, W>()}

}  // namespace

const AdapterLoops adapter_loops = {
    kRows, {RL_DOWN(float), RL_DOWN(Half)}, {RL_UP(float), RL_UP(Half)}};

}  // namespace rushlight::engine::RL_ISA
