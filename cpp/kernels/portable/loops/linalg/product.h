// Inner loops of the matrix product of types other than float32: a few rows times a piece of a
// matrix, and dot products, in the type of the sums. The blocking is in linalg/matmul_any.cpp.
#pragma once

#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

constexpr int64_t kProductRows = 6;  // maximum rows of a tile

// Rows of the factors are `stride` elements apart; the columns of b and of the sums are dense.
template <typename T>
struct ProductTile {
  int64_t k;
  const T* a;
  int64_t a_stride;
  const T* b;
  int64_t b_stride;
  T* sums;
  int64_t sums_stride;
};

template <typename T>
struct ProductLoops {
  int64_t width;  // columns of a tile
  // sums += a b, for a tile of (index + 1) rows.
  void (*tile[kProductRows])(const ProductTile<T>& tile);
  // The sum of a[k] b[k].
  T (*dot)(const T* a, const T* b, int64_t n);
};

// Integers are unsigned here, so that an overflow wraps around.
struct AllProductLoops {
  ProductLoops<float> f;
  ProductLoops<double> d;
  ProductLoops<uint32_t> i;
  ProductLoops<uint64_t> l;
};

RL_LOOPS(AllProductLoops, product_loops)

}  // namespace rushlight::kernels
