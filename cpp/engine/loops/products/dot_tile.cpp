#include "rushlight/engine/loops/products/dot.h"
#include "rushlight/engine/loops/vectors/dot_sums.h"
#include "rushlight/engine/loops/vectors/panels.h"
#include "rushlight/engine/loops/vectors/prefetch.h"

namespace rushlight::engine::RL_ISA {
namespace {

// The greatest tile that stays in registers, with a row of B and a quad of A.
#if defined(__AVX512VNNI__)
constexpr int kRows = 14;
constexpr int kPanels = 2;
#elif defined(__AVX512F__)
constexpr int kRows = 12;
constexpr int kPanels = 2;
#elif defined(__AVX__)
constexpr int kRows = 5;
constexpr int kPanels = 1;
#elif defined(RL_NEON)
constexpr int kRows = 6;
constexpr int kPanels = 1;
#else
constexpr int kRows = 3;
constexpr int kPanels = 1;
#endif
static_assert(kRows >= kLeastTileRows && kRows <= kMaxTileRows, "tables are too small");
template <int V>
inline void load_quads(const char* b, int64_t b_panel, Quads (&quads)[V]) {
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) quads[v] = quads_at(load_b<V>(b, b_panel, v));
}

// Adds the products of H rows and P panels to sums in registers.
template <int H, int P>
RL_INLINE void sum_terms(const DotTile& t, Accumulators<H, P * kPanelVectors>& sums) {
  constexpr int V = P * kPanelVectors;
  StrideMultiples s(t.a_stride);
  const auto* b = static_cast<const char*>(t.b);
  const char* ahead = t.ahead;
  for (int64_t y = 0; y < t.taps_y; ++y) {
    for (int64_t x = 0; x < t.taps_x; ++x) {
      const int64_t tap = y * t.tap_y_stride + x * t.tap_x_stride;
      RowBases a = RowBases::begin<H>(t);
      a += tap;
      for (int64_t k = t.depth / kQuad; k > 0; --k) {
        s.hide();
        Quads quads[V];
        load_quads(b, t.b_panel, quads);
        sums.add_weights(quads);
        add_terms<0, true>(sums, quads, a, s, kQuad);
        __builtin_prefetch(ahead, 0, 2);
        if (P == 2) __builtin_prefetch(ahead + t.ahead_stride / 2, 0, 2);
        ahead += t.ahead_stride;
        b += kQuadBytes;
        a += t.quad_stride;
      }
      if (t.depth % kQuad == 0) continue;
      Quads quads[V];
      load_quads(b, t.b_panel, quads);
      sums.add_weights(quads);
      add_terms<0, false>(sums, quads, a, s, t.depth % kQuad);
      b += kQuadBytes;
    }
  }
}

template <int H, int P>
void tile(const DotTile& t, void* out) {
  Accumulators<H, P * kPanelVectors> sums;
  sum_terms<H, P>(t, sums);
  sums.store(static_cast<int32_t*>(out));
}

#if defined(__AVX512F__)

// Stores row I and the rows after it, two at a time; `out` and `residual` are row I's.
template <int I, bool kAdds, int H>
RL_INLINE void store_bytes(const TwoPanels<kAdds>& panels, const Accumulators<H, 2>& sums,
                           uint8_t* out, int64_t stride, const uint8_t* residual,
                           int64_t residual_stride) {
  if constexpr (I < H) {
    constexpr int kNext = I + 1 < H ? I + 1 : I;
    const __m512i first = panels.narrow(reinterpret_cast<__m512i>(sums.rows[I][0]),
                                        reinterpret_cast<__m512i>(sums.rows[I][1]), residual);
    const __m512i second = panels.narrow(reinterpret_cast<__m512i>(sums.rows[kNext][0]),
                                         reinterpret_cast<__m512i>(sums.rows[kNext][1]),
                                         residual + (kNext - I) * residual_stride);
    panels.store(first, second, out, out + (kNext - I) * stride);
    store_bytes<I + 2>(panels, sums, out + 2 * stride, stride, residual + 2 * residual_stride,
                       residual_stride);
  }
}

// Sums that are requantized in registers.
template <int H>
void requantized(const DotTile& t, const RequantizeColumns& c, int64_t row) {
  Accumulators<H, 2> sums;
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    const IntVec start = load_int(c.start + v * kLanes);
#pragma GCC unroll 14
    for (int i = 0; i < H; ++i) sums.rows[i][v] = start;
  }
  sum_terms<H, 2>(t, sums);
  uint8_t* const out = c.out + row * c.out_stride;
  if (c.residual == nullptr) {
    return store_bytes<0>(TwoPanels<false>(c), sums, out, c.out_stride, nullptr, 0);
  }
  store_bytes<0>(TwoPanels<true>(c), sums, out, c.out_stride, c.residual + row * c.residual_stride,
                 c.residual_stride);
}

template <int H>
constexpr DotBytesFn requantized_or_null() noexcept {
  if constexpr (H > kRows) {
    return nullptr;
  } else {
    return requantized<H>;
  }
}

#else

template <int H>
constexpr DotBytesFn requantized_or_null() noexcept {
  return nullptr;
}

#endif

// A tile of few rows has too few sums to hide the latency of additions: each is split into several
// accumulators.
template <int H>
void narrow(const DotTile& t, void* out) {
  constexpr int V = kPanelVectors;
  constexpr int kMaxPerRow = kPanels * kRows * kPanelVectors / (H * V);  // that stay in registers
  constexpr int U = kMaxPerRow < 1 ? 1 : (kMaxPerRow < 8 ? kMaxPerRow : 8);
  Accumulators<H, V> parts[U];
  const auto* b = static_cast<const char*>(t.b);
  const auto* a = reinterpret_cast<const char*>(t.a[0]);
  const int64_t whole = t.depth / kQuad;
  const int64_t rest = t.depth % kQuad;
  int64_t k = 0;
  for (; k + U <= whole; k += U) {
    fetch_ahead<U * kQuadBytes>(b);
#pragma GCC unroll 8
    for (int u = 0; u < U; ++u) {
      Quads quads[V];
      load_quads(b + u * kQuadBytes, 0, quads);
      parts[u].add_weights(quads);
#pragma GCC unroll 8
      for (int i = 0; i < H; ++i) {
        const RowQuad quad = quad_of(bytes_at(a + i * t.a_stride + (k + u) * kQuad));
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) {
          parts[u].rows[i][v] = add_dot(parts[u].rows[i][v], quads[v], quad);
        }
      }
    }
    b += U * kQuadBytes;
  }
  for (; k * kQuad < t.depth; ++k) {
    Quads quads[V];
    load_quads(b, 0, quads);
    parts[0].add_weights(quads);
#pragma GCC unroll 8
    for (int i = 0; i < H; ++i) {
      const char* at = a + i * t.a_stride + k * kQuad;
      const RowQuad quad = quad_of(k < whole ? bytes_at(at) : bytes_at(at, rest));
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        parts[0].rows[i][v] = add_dot(parts[0].rows[i][v], quads[v], quad);
      }
    }
    b += kQuadBytes;
  }
#pragma GCC unroll 8
  for (int u = 1; u < U; ++u) parts[0] += parts[u];
  parts[0].store(static_cast<int32_t*>(out));
}

template <int H>
constexpr DotTileFn tile_or_null(int panels) noexcept {
  if constexpr (H > kRows) {
    return nullptr;
  } else if constexpr (kPanels == 1) {
    return panels == 1 ? tile<H, 1> : nullptr;
  } else {
    return panels == 1 ? tile<H, 1> : tile<H, 2>;
  }
}

#define RL_TILES(H) {tile_or_null<H>(1), tile_or_null<H>(2)}
#define RL_BYTES(H) requantized_or_null<H>()

}  // namespace

const DotTiles dot_loops = {
    kRows,
    kPanels,
    {RL_TILES(1), RL_TILES(2), RL_TILES(3), RL_TILES(4), RL_TILES(5), RL_TILES(6), RL_TILES(7),
     RL_TILES(8), RL_TILES(9), RL_TILES(10), RL_TILES(11), RL_TILES(12), RL_TILES(13),
     RL_TILES(14)},
    {narrow<1>, narrow<2>, narrow<3>, narrow<4>, narrow<5>, narrow<6>},
    {RL_BYTES(1), RL_BYTES(2), RL_BYTES(3), RL_BYTES(4), RL_BYTES(5), RL_BYTES(6), RL_BYTES(7),
     RL_BYTES(8), RL_BYTES(9), RL_BYTES(10), RL_BYTES(11), RL_BYTES(12), RL_BYTES(13),
     RL_BYTES(14)},
    {},
};

}  // namespace rushlight::engine::RL_ISA
