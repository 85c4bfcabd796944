#include "rushlight/kernels/portable/loops/linalg/gemm.h"

#include <cstring>

#include "rushlight/kernel/loops/vec.h"
#include "rushlight/kernel/selection.h"

namespace rushlight::kernels::RL_ISA {
namespace {

// The size of the largest tile that stays in registers: accumulators, two vectors of B and one of
// A.
#if defined(__AVX512F__)
constexpr int64_t kMostHeight = 14;
#elif defined(__AVX__) || defined(__x86_64__)
constexpr int64_t kMostHeight = 6;
#elif defined(RL_NEON)
constexpr int64_t kMostHeight = 12;
#else
constexpr int64_t kMostHeight = 4;
#endif
// What this build has loops for.
constexpr selection::Products kBuilt = selection::kProducts;
constexpr int64_t kHeight = kBuilt.rows < kMostHeight ? kBuilt.rows : kMostHeight;
constexpr int64_t kDotHeight = kBuilt.rows < kDotRows ? kBuilt.rows : kDotRows;

template <int V>
inline void store_row(const GemmTile& t, const Vec* sums, int64_t i) {
  const Vec alpha = splat(t.alpha);
  const Vec beta = splat(t.beta);
  float* c = t.c + i * t.c_stride;
  const float* add = t.add == nullptr ? nullptr : t.add + i * t.add_row;
#pragma GCC unroll 16
  for (int64_t v = 0; v < V; ++v) {
    Vec result = alpha * sums[v];
    if (add != nullptr) {
      result += beta * (t.add_col == 0 ? splat(*add) : load(add + v * kLanes));
    }
    store(c + v * kLanes, result);
  }
}

template <int H, int V>
void tile(const GemmTile& t) {
  Vec sums[H][V];
#pragma GCC unroll 16
  for (int64_t i = 0; i < H; ++i) {
#pragma GCC unroll 16
    for (int64_t v = 0; v < V; ++v) sums[i][v] = Vec{};
  }
  const float* a = t.a;
  const float* b = t.b;
  for (int64_t k = t.k; k > 0; --k) {
    Vec row[V];
#pragma GCC unroll 16
    for (int64_t v = 0; v < V; ++v) row[v] = load(b + v * kLanes);
#pragma GCC unroll 16
    for (int64_t i = 0; i < H; ++i) {
      const Factor factor = factor_at(a + i);
#pragma GCC unroll 16
      for (int64_t v = 0; v < V; ++v) sums[i][v] = add_product(sums[i][v], row[v], factor);
    }
    a += H;
    b += t.b_stride;
  }
#pragma GCC unroll 16
  for (int64_t i = 0; i < H; ++i) store_row<V>(t, sums[i], i);
}

void pack_rows(const float* const* rows, int count, int64_t n, float* out, int64_t pitch) {
  const float* lane[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) lane[i] = rows[i < count ? i : count - 1];
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    Vec square[kLanes];
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLanes; ++i) square[i] = load(lane[i] + k);
    transpose(square);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLanes; ++i) store(out + (k + i) * pitch, square[i]);
  }
  for (; k < n; ++k) {
    for (int64_t i = 0; i < count; ++i) out[k * pitch + i] = lane[i][k];
  }
}

template <int V>
void pack_full_columns(const float* in, int64_t stride, int64_t n, float* out, int64_t pitch) {
  for (int64_t k = 0; k < n; ++k) {
#pragma GCC unroll 4
    for (int64_t v = 0; v < V; ++v)
      store(out + k * pitch + v * kLanes, load(in + k * stride + v * kLanes));
  }
}

void pack_columns(const float* in, int64_t stride, int count, int64_t n, float* out,
                  int64_t pitch) {
  if (count == kLanes && pitch == kLanes) return pack_full_columns<1>(in, stride, n, out, pitch);
  if (count == 2 * kLanes && pitch == 2 * kLanes) {
    return pack_full_columns<2>(in, stride, n, out, pitch);
  }
  for (int64_t k = 0; k < n; ++k) {
    float* row = out + k * pitch;
    for (int64_t i = 0; i < count; ++i) row[i] = in[k * stride + i];
    for (int64_t i = count; i < pitch; ++i) row[i] = 0;
  }
}

// What is left of dot products after their whole vectors: fewer elements of k than a vector has,
// and the sums over lanes. One function for all tiles, since it takes as much code as the rest of
// them.
__attribute__((noinline)) void last_dots(Vec* acc, const float* a, int64_t a_stride, int64_t rows,
                                         const float* b, int64_t b_stride, int64_t cols, int64_t n,
                                         float* sums) {
  for (int64_t r = 0; r < rows; ++r) {
    const Vec left = load_first(a + r * a_stride, n);
    for (int64_t s = 0; s < cols; ++s) {
      Vec& sum = acc[r * cols + s];
      if (n > 0) sum += left * load_first(b + s * b_stride, n);
      sums[r * kDotRows + s] = sum_lanes(sum);
    }
  }
}

template <int R, int S>
void dot_tile(const float* a, int64_t a_stride, const float* b, int64_t b_stride, int64_t n,
              float* sums) {
  Vec acc[R][S] = {};
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    Vec right[S];
#pragma GCC unroll 4
    for (int64_t s = 0; s < S; ++s) right[s] = load(b + s * b_stride + k);
#pragma GCC unroll 4
    for (int64_t r = 0; r < R; ++r) {
      const Vec left = load(a + r * a_stride + k);
#pragma GCC unroll 4
      for (int64_t s = 0; s < S; ++s) acc[r][s] += left * right[s];
    }
  }
  Vec whole[R * S];  // a copy, so that `acc` itself stays in registers
#pragma GCC unroll 4
  for (int64_t r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int64_t s = 0; s < S; ++s) whole[r * S + s] = acc[r][s];
  }
  last_dots(whole, a + k, a_stride, R, b + k, b_stride, S, n - k, sums);
}

using DotFn = void (*)(const float*, int64_t, const float*, int64_t, int64_t, float*);
template <int R, int S>
constexpr DotFn dot_or_null() noexcept {
  if constexpr (R <= kDotHeight) {
    return dot_tile<R, S>;
  } else {
    return nullptr;
  }
}
#define RL_DOTS(R) \
  {dot_or_null<R, 1>(), dot_or_null<R, 2>(), dot_or_null<R, 3>(), dot_or_null<R, 4>()}
constexpr DotFn kDot[kDotRows][kDotRows] = {RL_DOTS(1), RL_DOTS(2), RL_DOTS(3), RL_DOTS(4)};

// For more rows than this build has tiles of.
__attribute__((noinline)) void dot_parts(const float* a, int64_t a_stride, int rows, const float* b,
                                         int64_t b_stride, int cols, int64_t k, float* sums) {
  constexpr int kHigh = static_cast<int>(kDotHeight);
  for (int row = 0; row < rows; row += kHigh) {
    const int high = rows - row < kHigh ? rows - row : kHigh;
    kDot[high - 1][cols - 1](a + row * a_stride, a_stride, b, b_stride, k, sums + row * kDotRows);
  }
}

void dot(const float* a, int64_t a_stride, int rows, const float* b, int64_t b_stride, int cols,
         int64_t k, float* sums) {
  if constexpr (kDotHeight < kDotRows) {
    if (rows > kDotHeight) return dot_parts(a, a_stride, rows, b, b_stride, cols, k, sums);
  }
  kDot[rows - 1][cols - 1](a, a_stride, b, b_stride, k, sums);
}

template <int H>
constexpr GemmTileFn tile_or_null(int vectors) noexcept {
  if constexpr (H <= kHeight) {
    return vectors == 1 ? tile<H, 1> : tile<H, 2>;
  } else {
    return nullptr;
  }
}

template <int H, int V>
constexpr GemmTileFn wide_or_null() noexcept {
  if constexpr (kBuilt.wide && H <= kHeight) {
    return tile<H, V>;
  } else {
    return nullptr;
  }
}

#define RL_TILES(H) {tile_or_null<H>(1), tile_or_null<H>(2)}

}  // namespace

#if defined(__AVX512F__)
#define RL_WIDE_HEIGHT 6
#define RL_WIDE                                                      \
  {wide_or_null<1, 8>(), wide_or_null<2, 8>(), wide_or_null<3, 8>(), \
   wide_or_null<4, 4>(), wide_or_null<5, 4>(), wide_or_null<6, 4>()}
#define RL_WIDE_VECTORS {8, 8, 8, 4, 4, 4}
#else
#define RL_WIDE_HEIGHT 3
#define RL_WIDE \
  {wide_or_null<1, 8>(), wide_or_null<2, 4>(), wide_or_null<3, 4>(), nullptr, nullptr, nullptr}
#define RL_WIDE_VECTORS {8, 4, 4, 0, 0, 0}
#endif

const GemmLoops gemm_loops = {
    kLanes,
    kHeight,
    RL_WIDE_HEIGHT,
    384,
    {RL_TILES(1), RL_TILES(2), RL_TILES(3), RL_TILES(4), RL_TILES(5), RL_TILES(6), RL_TILES(7),
     RL_TILES(8), RL_TILES(9), RL_TILES(10), RL_TILES(11), RL_TILES(12), RL_TILES(13),
     RL_TILES(14)},
    RL_WIDE,
    RL_WIDE_VECTORS,
    pack_rows,
    pack_columns,
    kBuilt.dots ? dot : nullptr,
};

}  // namespace rushlight::kernels::RL_ISA
