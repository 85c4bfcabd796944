#include "rushlight/engine/loops/products/gemm.h"

#include "rushlight/engine/loops/vectors/edge.h"
#include "rushlight/engine/loops/vectors/prefetch.h"
#include "rushlight/engine/loops/vectors/strides.h"

namespace rushlight::engine::RL_ISA {
namespace {

using namespace ::rushlight::kernels::RL_ISA;

// The greatest tile that stays in registers, with a row of B and an element of A.
#if defined(__AVX512F__)
constexpr int kRows = 14;
constexpr int kPanels = 2;
#elif defined(__AVX__) || defined(RL_NEON)
constexpr int kRows = 6;
constexpr int kPanels = 1;
#else
constexpr int kRows = 3;
constexpr int kPanels = 1;
#endif
static_assert(kRows >= kLeastTileRows && kRows <= kMaxTileRows, "tables are too small");
constexpr int kPanelVectors = kPanel / kLanes;

// accumulators[i] += A[i] * right for row I and those after it.
template <int I, int H, int V>
inline void add_terms(Vec (&accumulators)[H][V], const Vec (&right)[V], const char* first,
                      const char* second, const StrideMultiples& s) {
  if constexpr (I < H) {
    const char* at = s.at<I % kFirstRows>(I < kFirstRows ? first : second);
    const Factor factor = factor_at(reinterpret_cast<const float*>(at));
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      accumulators[I][v] = add_product(accumulators[I][v], right[v], factor);
    add_terms<I + 1>(accumulators, right, first, second, s);
  }
}

template <int P>
inline const float* b_vector(const float* b, int64_t b_panel, int v) {
  if constexpr (P == 1) return b + v * kLanes;
  return b + v / kPanelVectors * b_panel + v % kPanelVectors * kLanes;
}

template <int H, int V>
inline void epilogue(const GemmTile& t, Vec (&accumulators)[H][V]) {
  const bool whole = t.columns == V * kLanes;
  if (t.residual != nullptr) {
#pragma GCC unroll 14
    for (int i = 0; i < H; ++i) {
      const float* row = t.residual + i * t.residual_stride;
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        const int64_t left = t.columns - v * kLanes;
        if (left > 0) accumulators[i][v] += load_some(row + v * kLanes, left);
      }
    }
  }
  if (t.clamp) {
    const Vec low = splat(t.low);
    const Vec high = splat(t.high);
#pragma GCC unroll 14
    for (int i = 0; i < H; ++i) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) accumulators[i][v] = clamp(accumulators[i][v], low, high);
    }
  }
#pragma GCC unroll 14
  for (int i = 0; i < H; ++i) {
    float* c = t.c + i * t.c_stride;
    if (whole) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) store(c + v * kLanes, accumulators[i][v]);
    } else {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v)
        store_some(c + v * kLanes, accumulators[i][v], t.columns - v * kLanes);
    }
  }
}

template <int H, int P>
void tile(const GemmTile& t) {
  constexpr int V = P * kPanelVectors;
  Vec accumulators[H][V];
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) {
    const Vec start = t.bias == nullptr ? Vec{} : load(t.bias + v * kLanes);
#pragma GCC unroll 14
    for (int i = 0; i < H; ++i) accumulators[i][v] = start;
  }
  StrideMultiples s(t.a_stride * 4);
  const float* b = static_cast<const float*>(t.b);
  const char* ahead = t.ahead;
  for (int64_t y = 0; y < t.taps_y; ++y) {
    for (int64_t x = 0; x < t.taps_x; ++x) {
      const int64_t tap = (y * t.tap_y_stride + x * t.tap_x_stride) * 4;
      const char* first = reinterpret_cast<const char*>(t.a[0]) + tap;
      const char* second = reinterpret_cast<const char*>(t.a[H > kFirstRows ? 1 : 0]) + tap;
      for (int64_t k = t.depth; k > 0; --k) {
        s.hide();
        Vec right[V];
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) right[v] = load(b_vector<P>(b, t.b_panel, v));
        add_terms<0>(accumulators, right, first, second, s);
        __builtin_prefetch(ahead, 0, 2);
        ahead += t.ahead_stride;
        b += kPanel;
        first += t.k_stride * 4;
        second += t.k_stride * 4;
      }
    }
  }
  epilogue(t, accumulators);
}

// A tile of few rows has too few sums to hide the latency of additions: each is split into several
// accumulators.
template <int H, typename B>
void narrow(const GemmTile& t) {
  constexpr int V = kPanelVectors;
  constexpr int kMaxPerRow = kPanels * kRows * kPanelVectors / (H * V);  // that stay in registers
  constexpr int U = kMaxPerRow < 1 ? 1 : (kMaxPerRow < 8 ? kMaxPerRow : 8);
  Vec parts[U][H][V] = {};
  const B* b = static_cast<const B*>(t.b);
  int64_t k = 0;
  for (; k + U <= t.depth; k += U) {
    if (t.ahead != nullptr) fetch_ahead<U * kPanel * sizeof(B)>(b);
#pragma GCC unroll 8
    for (int u = 0; u < U; ++u) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        const Vec right = load_weights(b + u * kPanel + v * kLanes);
#pragma GCC unroll 8
        for (int i = 0; i < H; ++i) {
          const Factor factor = factor_at(t.a[0] + i * t.a_stride + k + u);
          parts[u][i][v] = add_product(parts[u][i][v], right, factor);
        }
      }
    }
    b += U * kPanel;
  }
  for (; k < t.depth; ++k) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const Vec right = load_weights(b + v * kLanes);
#pragma GCC unroll 8
      for (int i = 0; i < H; ++i) {
        const Factor factor = factor_at(t.a[0] + i * t.a_stride + k);
        parts[0][i][v] = add_product(parts[0][i][v], right, factor);
      }
    }
    b += kPanel;
  }
  Vec accumulators[H][V];
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) {
    const Vec start = t.bias == nullptr ? Vec{} : load(t.bias + v * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < H; ++i) {
      accumulators[i][v] = parts[0][i][v];
#pragma GCC unroll 8
      for (int u = 1; u < U; ++u) accumulators[i][v] += parts[u][i][v];
      accumulators[i][v] += start;
    }
  }
  epilogue(t, accumulators);
}

void pack_rows(const float* const* row, int64_t rows, int64_t depth, float* out) {
  static_assert(kMaxTileRows <= 16, "a square has at most 16 rows");
  int64_t k = 0;
  if (rows <= kLanes) {
    const float* lane[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) lane[i] = row[i < rows ? i : rows - 1];
    for (; k + kLanes <= depth; k += kLanes) {
      Vec square[kLanes];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) square[i] = load(lane[i] + k);
      transpose(square);
      // Lanes beyond `rows` are overwritten by the next k.
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) store(out + (k + i) * rows, square[i]);
    }
  }
  for (; k < depth; ++k) {
    for (int64_t i = 0; i < rows; ++i) out[k * rows + i] = row[i][k];
  }
}

// Columns that lie one after the other in memory, transposed; the rest of the panel is filled
// already.
int64_t pack_transposed(const float* in, int64_t column_stride, int64_t depth, int64_t columns,
                        float* out) {
  int64_t k = 0;
  for (; k + kLanes <= depth; k += kLanes) {
    for (int64_t j = 0; j < columns; j += kLanes) {
      const int64_t n = columns - j < kLanes ? columns - j : kLanes;
      Vec square[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) {
        square[i] = i < n ? load(in + (j + i) * column_stride + k) : Vec{};
      }
      transpose(square);
      for (int64_t i = 0; i < kLanes; ++i) store(out + (k + i) * kPanel + j, square[i]);
    }
  }
  return k;
}

void pack_panel(const float* in, int64_t row_stride, int64_t column_stride, int64_t depth,
                int64_t columns, float* out) {
  if (columns < kPanel) {
    for (int64_t i = 0; i < depth * kPanel; ++i) out[i] = 0;
  }
  int64_t k = 0;
  if (row_stride == 1) k = pack_transposed(in, column_stride, depth, columns, out);
  if (column_stride == 1 && columns == kPanel) {
    for (; k < depth; ++k) {
      for (int64_t v = 0; v < kPanel; v += kLanes) {
        store(out + k * kPanel + v, load(in + k * row_stride + v));
      }
    }
  }
  for (; k < depth; ++k) {
    for (int64_t j = 0; j < columns; ++j) {
      out[k * kPanel + j] = in[k * row_stride + j * column_stride];
    }
  }
}

template <int H>
constexpr GemmTileFn tile_or_null(int panels) noexcept {
  if constexpr (H > kRows) {
    return nullptr;
  } else if constexpr (kPanels == 1) {
    return panels == 1 ? tile<H, 1> : nullptr;
  } else {
    return panels == 1 ? tile<H, 1> : tile<H, 2>;
  }
}

#define RL_TILES(H) {tile_or_null<H>(1), tile_or_null<H>(2)}
#define RL_NARROW(B) \
  {narrow<1, B>, narrow<2, B>, narrow<3, B>, narrow<4, B>, narrow<5, B>, narrow<6, B>}

}  // namespace

const GemmLoops gemm_loops = {
    kRows,
    kPanels,
    {RL_TILES(1), RL_TILES(2), RL_TILES(3), RL_TILES(4), RL_TILES(5), RL_TILES(6), RL_TILES(7),
     RL_TILES(8), RL_TILES(9), RL_TILES(10), RL_TILES(11), RL_TILES(12), RL_TILES(13),
     RL_TILES(14)},
    RL_NARROW(float),
    RL_NARROW(Half),
    RL_NARROW(uint16_t),
    pack_rows,
    pack_panel,
};

}  // namespace rushlight::engine::RL_ISA
