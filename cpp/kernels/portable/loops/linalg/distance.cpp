#include "rushlight/kernels/portable/loops/linalg/distance.h"

#include <cmath>

#include "rushlight/kernel/loops/trig.h"
#include "rushlight/kernel/loops/vec.h"

namespace rushlight::kernels::RL_ISA {
namespace {

float magnitude(float d) { return fabsf(d); }
double magnitude(double d) { return fabs(d); }

// The folds below process whole vectors.
struct Nonzero {
  template <typename V>
  static V fold(V acc, V d) {
    const V one = V{} + 1;
    const V counted = d != 0 ? one : V{};
    return acc + (d == d ? counted : d);
  }
};
struct Absolute {
  template <typename V>
  static V fold(V acc, V d) {
    return acc + (d < 0 ? -d : d);
  }
};
struct Squared {
  template <typename V>
  static V fold(V acc, V d) {
    return acc + d * d;
  }
};
struct Greatest {
  template <typename V>
  static V fold(V acc, V d) {
    const V m = d < 0 ? -d : d;
    const V greater = m > acc ? m : acc;
    return m != m ? m : greater;
  }
};

// Folds kVectors vectors of columns, whose sums stay in registers.
template <typename T, typename Op, int64_t kVectors>
void fold_columns(const T* a, size_t n, const T* columns, size_t pitch, T* acc) {
  using V = typename VectorOf<T>::Type;
  using Memory = typename VectorOf<T>::Memory;
  constexpr int64_t kCount = VectorOf<T>::kCount;
  V sums[kVectors];
#pragma GCC unroll 4
  for (int64_t v = 0; v < kVectors; ++v) {
    sums[v] = *reinterpret_cast<const Memory*>(acc + v * kCount);
  }
  for (size_t i = 0; i < n; ++i) {
    const V value = a[i] - V{};
    const T* row = columns + i * pitch;
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) {
      const V other = *reinterpret_cast<const Memory*>(row + v * kCount);
      sums[v] = Op::template fold<V>(sums[v], value - other);
    }
  }
#pragma GCC unroll 4
  for (int64_t v = 0; v < kVectors; ++v) {
    *reinterpret_cast<Memory*>(acc + v * kCount) = sums[v];
  }
}

template <typename T, typename Op>
void fold(const void* a_in, size_t n, const void* columns_in, size_t pitch, size_t count, double,
          void* acc_in) {
  constexpr size_t kCount = static_cast<size_t>(VectorOf<T>::kCount);
  const T* a = static_cast<const T*>(a_in);
  const T* columns = static_cast<const T*>(columns_in);
  T* acc = static_cast<T*>(acc_in);
  size_t j = 0;
  for (; j + 4 * kCount <= count; j += 4 * kCount) {
    fold_columns<T, Op, 4>(a, n, columns + j, pitch, acc + j);
  }
  for (; j < count; j += kCount) fold_columns<T, Op, 1>(a, n, columns + j, pitch, acc + j);
}

// |d|^p, a loop that compilers vectorise by themselves.
template <typename T>
void fold_powers(const void* a_in, size_t n, const void* columns_in, size_t pitch, size_t count,
                 double power, void* acc_in) {
  const T* a = static_cast<const T*>(a_in);
  const T* columns = static_cast<const T*>(columns_in);
  T* acc = static_cast<T*>(acc_in);
  const T p = static_cast<T>(power);
  for (size_t i = 0; i < n; ++i) {
    const T value = a[i];
    const T* row = columns + i * pitch;
    RL_VECTORIZE
    for (size_t j = 0; j < count; ++j) acc[j] += vpow(magnitude(value - row[j]), p);
  }
}

float square_root(float x) { return sqrtf(x); }
double square_root(double x) { return sqrt(x); }

template <typename T>
void root(void* acc_in, size_t count, double p) {
  T* acc = static_cast<T*>(acc_in);
  if (p == 2.0) {
    for (size_t k = 0; k < count; ++k) acc[k] = square_root(acc[k]);
    return;
  }
  const T exponent = static_cast<T>(1.0 / p);
  for (size_t k = 0; k < count; ++k) acc[k] = vpow(acc[k], exponent);
}

}  // namespace

#define RL_DISTANCE(Op) {fold<float, Op>, fold<double, Op>}

const DistanceLoops distance_loops = {{RL_DISTANCE(Nonzero),
                                       RL_DISTANCE(Absolute),
                                       RL_DISTANCE(Squared),
                                       {fold_powers<float>, fold_powers<double>},
                                       RL_DISTANCE(Greatest)},
                                      {root<float>, root<double>}};

}  // namespace rushlight::kernels::RL_ISA
