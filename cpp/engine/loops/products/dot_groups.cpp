#include "rushlight/engine/loops/products/dot.h"
#include "rushlight/engine/loops/vectors/dot_signed.h"
#include "rushlight/engine/loops/vectors/edge.h"
#include "rushlight/engine/loops/vectors/integers.h"
#include "rushlight/engine/loops/vectors/prefetch.h"
#include "rushlight/engine/loops/vectors/strides.h"

namespace rushlight::engine::RL_ISA {
namespace {

// The greatest tile that stays in registers: the sums of a group, the scaled sums, a row of B, a
// quad of A.
#if defined(__AVX512VNNI__)
constexpr int kRows = 7;
constexpr int kPanels = 2;
#elif defined(__AVX512F__)
constexpr int kRows = 5;
constexpr int kPanels = 2;
#else
constexpr int kRows = 3;
constexpr int kPanels = 1;
#endif
static_assert(kRows >= kLeastTileRows && kRows <= kFirstRows, "tables are too small");

constexpr int kPanelVectors = kPanel / kLanes;
// Terms that the inner loop takes at once: half of the greatest group of a row.
constexpr int64_t kTerms = kMaxRowGroup / 2;

// The sums of a group, and what they add up to with their scales, of H rows and V vectors of
// columns.
template <int kBits, int H, int V>
struct Sums {
  using Dot = SignedDot<kBits>;
  typename Dot::Sum group[H][V];
  Vec numbers[H][V] = {};

  // What follows is done for row I and those after it. `row_sums` and `scales` are the first row's.
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
  template <int I = 0>
  RL_INLINE void scale(const Vec (&b_scales)[V], const char* scales, const char* row_sums,
                       const StrideMultiples& s) {
    if constexpr (I < H) {
      float row_scale;
      std::memcpy(&row_scale, s.at<I>(scales), sizeof row_scale);
      const Vec factor = ::rushlight::kernels::RL_ISA::splat(row_scale * (1.0f / Dot::kParts));
      const auto row_sum = static_cast<int32_t>(bytes_at(s.at<I>(row_sums)));
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        numbers[I][v] += to_floats(Dot::integers(group[I][v], row_sum)) * b_scales[v] * factor;
      }
      scale<I + 1>(b_scales, scales, row_sums, s);
    }
  }
};

// Adds kTerms terms of a row group.
template <int kBits, int H, int V>
RL_INLINE void add_terms(Sums<kBits, H, V>& sums, const char* b, int64_t b_panel, const char* a,
                         const StrideMultiples& s) {
  using Dot = SignedDot<kBits>;
#pragma GCC unroll 4
  for (int64_t q = 0; q < kTerms / kQuad; ++q) {
    const char* row = b + (kBits == 8 ? q : q / 2) * kQuadBytes;
    typename Dot::Quads quads[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const IntVec packed =
          load_lanes(row + v / kPanelVectors * b_panel + v % kPanelVectors * kLanes * kQuad);
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
template <int kBits, int H, int P, bool kNarrow>
void tile(const DotTile& t, void* out) {
  constexpr int V = P * kPanelVectors;
  constexpr int64_t kBytes = kTerms / (kBits == 8 ? kQuad : kOct) * kQuadBytes;
  const int64_t ratio = t.row_groups.groups / t.groups;
  const int64_t parts = t.depth / t.row_groups.groups / kTerms;
  StrideMultiples s(t.a_stride);
  StrideMultiples of_groups(t.row_groups.groups * 4);
  const auto* a = reinterpret_cast<const char*>(t.a[0]);
  const auto* b = static_cast<const char*>(t.b);
  const auto* row_sums = reinterpret_cast<const char*>(t.row_groups.sums);
  const auto* row_scales = reinterpret_cast<const char*>(t.row_groups.scales);
  const char* ahead = t.ahead;
  const int64_t ahead_bytes = t.ahead_stride * (kBytes / kQuadBytes);
  Sums<kBits, H, V> sums;
  for (int64_t group = 0; group < t.groups; ++group) {
    for (int64_t i = 0; i < ratio; ++i, row_sums += 4, row_scales += 4) {
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
        add_terms(sums, b, t.b_panel, a, s);
      }
      // Loaded late: all registers are taken before.
      Vec scales[V];
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        const char* panel = static_cast<const char*>(t.scales) + v / kPanelVectors * t.scale_panel;
        const int64_t at = group * kPanel + v % kPanelVectors * kLanes;
        scales[v] = load_scales(panel, t.scale_type, at);
        // Those of the panels after these: too few lie together for processors to fetch in time.
        __builtin_prefetch(panel + P * t.scale_panel + at * scale_bytes(t.scale_type));
      }
      sums.scale(scales, row_scales, row_sums, of_groups);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < H; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      ::rushlight::kernels::RL_ISA::store(static_cast<float*>(out) + (i * V + v) * kLanes,
                                          sums.numbers[i][v]);
    }
  }
}

template <int kBits, int H, int P>
constexpr DotTileFn tile_or_null() noexcept {
  if constexpr (H > kRows || P > kPanels) {
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
      kPanels,
      {RL_TILES(1), RL_TILES(2), RL_TILES(3), RL_TILES(4), RL_TILES(5), RL_TILES(6), RL_TILES(7)},
      {tile<kBits, 1, 1, true>, tile<kBits, 2, 1, true>, tile<kBits, 3, 1, true>,
       tile<kBits, 4, 1, true>, tile<kBits, 5, 1, true>, tile<kBits, 6, 1, true>},
      {}};
}

}  // namespace

const GroupLoops group_loops = {tiles_of<8>(), tiles_of<4>()};

}  // namespace rushlight::engine::RL_ISA
