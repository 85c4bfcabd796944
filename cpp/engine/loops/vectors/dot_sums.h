// Accumulators of dot products, which stay in registers. Included by loops files dot_*.cpp only.
#pragma once

#include "rushlight/engine/loops/products/dot.h"
#include "rushlight/engine/loops/vectors/dot.h"
#include "rushlight/engine/loops/vectors/strides.h"
#include "rushlight/engine/types/product.h"

namespace rushlight::engine::RL_ISA {

constexpr int kPanelVectors = kPanel / kLanes;

// Sums of H rows and V vectors of columns, and of the weights alone if kOffset is subtracted from
// A.
template <int H, int V>
struct Accumulators {
  IntVec rows[H][V] = {};
  IntVec weights[V] = {};

  void add_weights(const Quads (&b)[V]) {
    if constexpr (kOffset != 0) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) weights[v] = add_dot(weights[v], b[v], quad_of(0));
    }
  }
  void operator+=(const Accumulators& other) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      if constexpr (kOffset != 0) weights[v] += other.weights[v];
#pragma GCC unroll 14
      for (int i = 0; i < H; ++i) rows[i][v] += other.rows[i][v];
    }
  }
  // Corrects for the kOffset in each term of A: `weights` are the products with -kOffset.
  IntVec value(int i, int v) const { return kOffset != 0 ? rows[i][v] - weights[v] : rows[i][v]; }
  void store(int32_t* out) const {
#pragma GCC unroll 14
    for (int i = 0; i < H; ++i) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) store_int(out + (i * V + v) * kLanes, value(i, v));
    }
  }
};

// The addresses of a tile's rows: rows 0..6 and the other rows have separate bases.
struct RowBases {
  const char* first;
  const char* second;

  template <int H>
  static RowBases begin(const DotTile& t) {
    return {reinterpret_cast<const char*>(t.a[0]),
            reinterpret_cast<const char*>(t.a[H > kFirstRows ? 1 : 0])};
  }
  template <int I>
  RL_INLINE const char* at(const StrideMultiples& s) const {
    return s.at<I % kFirstRows>(I < kFirstRows ? first : second);
  }
  RL_INLINE void operator+=(int64_t bytes) {
    first += bytes;
    second += bytes;
  }
};

// sums[i] += A[i] * b for row I and those after it; over `left` terms, or four if kWhole.
template <int I, bool kWhole, int H, int V>
RL_INLINE void add_terms(Accumulators<H, V>& sums, const Quads (&b)[V], const RowBases& a,
                         const StrideMultiples& s, int64_t left) {
  if constexpr (I < H) {
    const char* at = a.at<I>(s);
    const RowQuad quad = quad_of(kWhole || left >= kQuad ? bytes_at(at) : bytes_at(at, left));
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) sums.rows[I][v] = add_dot(sums.rows[I][v], b[v], quad);
    add_terms<I + 1, kWhole>(sums, b, a, s, left);
  }
}

// Loads vector v of a row of B.
template <int V>
inline IntVec load_b(const char* b, int64_t b_panel, int v) {
  const char* panel = V == kPanelVectors ? b : b + v / kPanelVectors * b_panel;
  return load_lanes(panel + v % kPanelVectors * kLanes * 4);
}

}  // namespace rushlight::engine::RL_ISA
