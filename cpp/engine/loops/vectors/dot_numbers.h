// Tiles whose terms have scales in groups: the sums of a group become floats, are multiplied by
// scales and added up. Included by loops files dot_*.cpp only.
#pragma once

#include "rushlight/engine/loops/vectors/dequantize.h"
#include "rushlight/engine/loops/vectors/dot_sums.h"
#include "rushlight/engine/loops/vectors/edge.h"

namespace rushlight::engine::RL_ISA {

// The greatest tile that stays in registers: the sums of a group, the scaled sums, a row of B, a
// quad of A.
#if defined(__AVX512VNNI__)
constexpr int kGroupRows = 6;
constexpr int kGroupPanels = 2;
#elif defined(__AVX512F__)
constexpr int kGroupRows = 5;
constexpr int kGroupPanels = 2;
#else
constexpr int kGroupRows = 3;
constexpr int kGroupPanels = 1;
#endif
static_assert(kGroupRows >= kLeastTileRows && kGroupRows <= kFirstRows, "tables are too small");

// The scales of a group of weights, of vector v of a tile of V.
template <int V>
RL_INLINE Vec load_scale(const DotTile& t, int64_t group, int v) {
  const char* panel = static_cast<const char*>(t.scales) + v / kPanelVectors * t.scale_panel;
  const int64_t at = group * kPanel + v % kPanelVectors * kLanes;
  // Those of the panels after these: too few lie together for processors to fetch them in time.
  __builtin_prefetch(panel + V / kPanelVectors * t.scale_panel + at * scale_bytes(t.scale_type));
  return load_scales(panel, t.scale_type, at);
}

// Stores numbers as rows from `row` on of the result.
template <Kind kKind, int H, int V>
RL_INLINE void store_results(const Vec (&numbers)[H][V], const DequantizeColumns& c, int64_t row) {
  constexpr int64_t kOfRow = kKind == Kind::Numbers ? 2 : 0;
  const float* scales = c.row_scales + kOfRow * row;
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) {
    const Numbers<kKind> constants(c, v * kLanes);
    float* out = c.out + row * c.out_stride + v * kLanes;
#pragma GCC unroll 8
    for (int i = 0; i < H; ++i, out += c.out_stride) {
      Vec number = constants.dequantized(numbers[i][v], scales + kOfRow * i);
      if (c.residual != nullptr) {
        number += load(c.residual + (row + i) * c.residual_stride + v * kLanes);
      }
      store(out, number);
    }
  }
}

// Stores numbers as the sums of a tile.
template <int H, int V>
RL_INLINE void store_numbers(const Vec (&numbers)[H][V], void* out) {
#pragma GCC unroll 8
  for (int i = 0; i < H; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      kernels::RL_ISA::store(static_cast<float*>(out) + (i * V + v) * kLanes, numbers[i][v]);
    }
  }
}

}  // namespace rushlight::engine::RL_ISA
