#include "rushlight/kernels/portable/loops/linalg/product.h"

#include <type_traits>

#include "rushlight/kernel/loops/vec.h"

namespace rushlight::kernels::RL_ISA {
namespace {

constexpr int64_t kVectors = 2;  // width of a tile, in vectors

// Without a vector multiplication of 64-bit integers, vectors are slower than scalar code.
template <typename T>
constexpr bool is_scalar() {
  return std::is_same<T, uint64_t>::value && kLanes == 4;
}

template <typename T>
void scalar_tile(const ProductTile<T>& t, int64_t height) {
  constexpr int64_t kWidth = kVectors * VectorOf<T>::kCount;
  for (int64_t i = 0; i < height; ++i) {
    T sums[kWidth] = {};
    const T* b = t.b;
    for (int64_t k = 0; k < t.k; ++k) {
      const T factor = t.a[i * t.a_stride + k];
#pragma GCC unroll 4
      for (int64_t j = 0; j < kWidth; ++j) sums[j] += factor * b[j];
      b += t.b_stride;
    }
    for (int64_t j = 0; j < kWidth; ++j) t.sums[i * t.sums_stride + j] += sums[j];
  }
}

template <typename T, int H>
void tile(const ProductTile<T>& t) {
  using V = typename VectorOf<T>::Type;
  using Memory = typename VectorOf<T>::Memory;
  constexpr int64_t kCount = VectorOf<T>::kCount;
  if constexpr (is_scalar<T>()) return scalar_tile(t, H);
  V sums[H][kVectors];
#pragma GCC unroll 8
  for (int64_t i = 0; i < H; ++i) {
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v) {
      sums[i][v] = *reinterpret_cast<const Memory*>(t.sums + i * t.sums_stride + v * kCount);
    }
  }
  const T* b = t.b;
  for (int64_t k = 0; k < t.k; ++k) {
    V row[kVectors];
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v) {
      row[v] = *reinterpret_cast<const Memory*>(b + v * kCount);
    }
#pragma GCC unroll 8
    for (int64_t i = 0; i < H; ++i) {
      const V factor = t.a[i * t.a_stride + k] - V{};
#pragma GCC unroll 2
      for (int64_t v = 0; v < kVectors; ++v) sums[i][v] += factor * row[v];
    }
    b += t.b_stride;
  }
#pragma GCC unroll 8
  for (int64_t i = 0; i < H; ++i) {
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v) {
      *reinterpret_cast<Memory*>(t.sums + i * t.sums_stride + v * kCount) = sums[i][v];
    }
  }
}

template <typename T>
T dot(const T* a, const T* b, int64_t n) {
  using V = typename VectorOf<T>::Type;
  using Memory = typename VectorOf<T>::Memory;
  constexpr int64_t kCount = VectorOf<T>::kCount;
  V sums[4] = {};
  int64_t k = 0;
  for (; !is_scalar<T>() && k + 4 * kCount <= n; k += 4 * kCount) {
#pragma GCC unroll 4
    for (int64_t v = 0; v < 4; ++v) {
      sums[v] += *reinterpret_cast<const Memory*>(a + k + v * kCount) *
                 *reinterpret_cast<const Memory*>(b + k + v * kCount);
    }
  }
  const V all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  T sum = 0;
  for (int64_t i = 0; i < kCount; ++i) sum += all[i];
  for (; k < n; ++k) sum += a[k] * b[k];
  return sum;
}

}  // namespace

#define RL_PRODUCT(T)                                                        \
  {kVectors * VectorOf<T>::kCount,                                           \
   {tile<T, 1>, tile<T, 2>, tile<T, 3>, tile<T, 4>, tile<T, 5>, tile<T, 6>}, \
   dot<T>}

const AllProductLoops product_loops = {
    RL_PRODUCT(float),
    RL_PRODUCT(double),
    RL_PRODUCT(uint32_t),
    RL_PRODUCT(uint64_t),
};

}  // namespace rushlight::kernels::RL_ISA
