#include "rushlight/engine/loops/products/dot.h"
#include "rushlight/engine/loops/vectors/dot_numbers.h"
#include "rushlight/engine/loops/vectors/dot_signed.h"
#include "rushlight/engine/loops/vectors/integers.h"
#include "rushlight/engine/loops/vectors/prefetch.h"

namespace rushlight::engine::RL_ISA {
namespace {

// Terms that the inner loop takes at once: half of the greatest group of a row.
constexpr int64_t kTerms = kMaxRowGroup / 2;

#if defined(__AVX512VNNI__)
constexpr int kRows = 7;
#else
constexpr int kRows = kGroupRows;
#endif

// The sums of a group, of H rows and V vectors of columns.
template <int kBits, int H, int V>
struct Sums {
  using Dot = SignedDot<kBits>;
  typename Dot::Sum group[H][V];

  // What follows is done for row I and those after it. `row_sums` and `row_scales` are the first
  // row's.
  template <int I = 0>
  RL_INLINE void start(const char* row_sums, const StrideMultiples& s) {
    if constexpr (I < H) {
      const auto first = Dot::start(static_cast<int32_t>(bytes_at(s.at<I>(row_sums))));
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) group[I][v] = first;
      start<I + 1>(row_sums, s);
    }
  }
  // Adds a quad of terms.
  template <int I = 0>
  RL_INLINE void add(const typename Dot::Quads (&b)[V], const char* a, const StrideMultiples& s) {
    if constexpr (I < H) {
      const auto quad = Dot::row(bytes_at(s.at<I>(a)));
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) Dot::add(&group[I][v], b[v], quad);
      add<I + 1>(b, a, s);
    }
  }
  // Adds them to `numbers`, times the scales of the columns and of the rows.
  template <int I = 0>
  RL_INLINE void scale(const Vec (&b_scales)[V], const char* row_scales, const char* row_sums,
                       const StrideMultiples& s, Vec (&numbers)[H][V]) const {
    if constexpr (I < H) {
      float row_scale;
      std::memcpy(&row_scale, s.at<I>(row_scales), sizeof row_scale);
      const Vec factor = kernels::RL_ISA::splat(row_scale * (1.0f / Dot::kParts));
      const auto row_sum = static_cast<int32_t>(bytes_at(s.at<I>(row_sums)));
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        numbers[I][v] += to_floats(Dot::integers(group[I][v], row_sum)) * b_scales[v] * factor;
      }
      scale<I + 1>(b_scales, row_scales, row_sums, s, numbers);
    }
  }
};

// Adds kTerms terms of a row group.
template <int kBits, int H, int V>
RL_INLINE void add_part(Sums<kBits, H, V>& sums, const char* b, int64_t b_panel, const char* a,
                        const StrideMultiples& s) {
  using Dot = SignedDot<kBits>;
#pragma GCC unroll 4
  for (int64_t q = 0; q < kTerms / kQuad; ++q) {
    const char* row = b + (kBits == 8 ? q : q / 2) * kQuadBytes;
    typename Dot::Quads quads[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const IntVec packed = load_b<V>(row, b_panel, v);
      if constexpr (kBits == 8) {
        quads[v] = Dot::quads(packed);
      } else if (q % 2 == 0) {
        quads[v] = Dot::template quads<false>(packed);
      } else {
        quads[v] = Dot::template quads<true>(packed);
      }
    }
    sums.add(quads, a + q * kQuad, s);
  }
}

// With kNarrow, one panel, whose bytes are fetched ahead; else what the tile is told to fetch.
template <int kBits, int H, int V, bool kNarrow>
RL_INLINE void sum_groups(const DotTile& t, Vec (&numbers)[H][V]) {
  constexpr int64_t kBytes = kTerms / (kBits == 8 ? kQuad : kOct) * kQuadBytes;
  const int64_t ratio = t.row_groups.groups / t.groups;
  const int64_t parts = t.depth / t.row_groups.groups / kTerms;
  StrideMultiples s(t.a_stride);
  const auto* a = reinterpret_cast<const char*>(t.a[0]);
  const auto* b = static_cast<const char*>(t.b);
  StrideMultiples of_groups(t.row_groups.groups * 4);
  const auto* row_sums = reinterpret_cast<const char*>(t.row_groups.sums);
  const auto* row_scales = reinterpret_cast<const char*>(t.row_groups.scales);
  const char* ahead = t.ahead;
  const int64_t ahead_bytes = t.ahead_stride * (kBytes / kQuadBytes);
  for (int64_t group = 0; group < t.groups; ++group) {
    for (int64_t i = 0; i < ratio; ++i, row_sums += 4, row_scales += 4) {
      Sums<kBits, H, V> sums;
      of_groups.hide();
      sums.start(row_sums, of_groups);
      for (int64_t part = 0; part < parts; ++part, a += kTerms, b += kBytes) {
        s.hide();
        if constexpr (kNarrow) {
          fetch_ahead<kBytes>(b);
        } else {
          for (int64_t at = 0; at < ahead_bytes; at += 64) __builtin_prefetch(ahead + at, 0, 2);
          ahead += ahead_bytes;
        }
        add_part(sums, b, t.b_panel, a, s);
      }
      // Loaded late: all registers are taken before.
      Vec scales[V];
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) scales[v] = load_scale<V>(t, group, v);
      sums.scale(scales, row_scales, row_sums, of_groups, numbers);
    }
  }
}

template <int kBits, int H, int P, bool kNarrow>
void tile(const DotTile& t, void* out) {
  Vec numbers[H][P * kPanelVectors] = {};
  sum_groups<kBits, H, P * kPanelVectors, kNarrow>(t, numbers);
  store_numbers(numbers, out);
}

template <int kBits, int H>
void float_tile(const DotTile& t, const DequantizeColumns& c, int64_t row) {
  constexpr int V = kGroupPanels * kPanelVectors;
  Vec numbers[H][V] = {};
  sum_groups<kBits, H, V, false>(t, numbers);
  store_results<Kind::Scaled>(numbers, c, row);
}

template <int kBits, int H>
constexpr DotFloatsFn floats_or_null() noexcept {
  if constexpr (H <= kRows) return float_tile<kBits, H>;
  return nullptr;
}
template <int kBits, int H, int P>
constexpr DotTileFn tile_or_null() noexcept {
  if constexpr (H > kRows || P > kGroupPanels) {
    return nullptr;
  } else {
    return tile<kBits, H, P, false>;
  }
}

#define RL_TILES(H) {tile_or_null<kBits, H, 1>(), tile_or_null<kBits, H, 2>()}

template <int kBits>
constexpr DotTiles tiles_of() noexcept {
  return {
      kRows,
      kGroupPanels,
      {RL_TILES(1), RL_TILES(2), RL_TILES(3), RL_TILES(4), RL_TILES(5), RL_TILES(6), RL_TILES(7)},
      {tile<kBits, 1, 1, true>, tile<kBits, 2, 1, true>, tile<kBits, 3, 1, true>,
       tile<kBits, 4, 1, true>, tile<kBits, 5, 1, true>, tile<kBits, 6, 1, true>},
      {},
      {floats_or_null<kBits, 1>(), floats_or_null<kBits, 2>(), floats_or_null<kBits, 3>(),
       floats_or_null<kBits, 4>(), floats_or_null<kBits, 5>(), floats_or_null<kBits, 6>(),
       floats_or_null<kBits, 7>()}};
}

}  // namespace

const GroupLoops group_loops = {tiles_of<8>(), tiles_of<4>()};

}  // namespace rushlight::engine::RL_ISA
