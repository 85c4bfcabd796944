// Accumulators of dot products, which stay in registers. Included by loops files dot_*.cpp only.
#pragma once

#include "rushlight/engine/loops/vectors/dot.h"
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

// Loads vector v of a row of B.
template <int V>
inline IntVec load_b(const char* b, int64_t b_panel, int v) {
  const char* panel = V == kPanelVectors ? b : b + v / kPanelVectors * b_panel;
  return load_lanes(panel + v % kPanelVectors * kLanes * 4);
}

}  // namespace rushlight::engine::RL_ISA
