#include "rushlight/kernels/portable/loops/distance.h"

#include <cmath>

#include "rushlight/kernels/portable/loops/trig.h"

namespace rushlight::kernels::RL_ISA {
namespace {

float magnitude(float d) { return fabsf(d); }
double magnitude(double d) { return fabs(d); }

struct Nonzero {
  template <typename T>
  static T fold(T acc, T d, T) {
    const T one = d != 0 ? T{1} : T{0};
    return acc + (d == d ? one : d);
  }
};
struct Absolute {
  template <typename T>
  static T fold(T acc, T d, T) {
    return acc + magnitude(d);
  }
};
struct Squared {
  template <typename T>
  static T fold(T acc, T d, T) {
    return acc + d * d;
  }
};
struct Power {
  template <typename T>
  static T fold(T acc, T d, T p) {
    return acc + vpow(magnitude(d), p);
  }
};
struct Greatest {
  template <typename T>
  static T fold(T acc, T d, T) {
    const T m = magnitude(d);
    const T greater = m > acc ? m : acc;
    return m != m ? m : greater;
  }
};

template <typename T, typename Op>
void fold(const void* a_in, size_t n, const void* columns_in, size_t pitch, size_t count,
          double power, void* acc_in) {
  const T* a = static_cast<const T*>(a_in);
  const T* columns = static_cast<const T*>(columns_in);
  T* acc = static_cast<T*>(acc_in);
  const T p = static_cast<T>(power);
  for (size_t j = 0; j < count; j += kDistanceLanes) {
    T sums[kDistanceLanes];
    for (size_t k = 0; k < kDistanceLanes; ++k) sums[k] = acc[j + k];
    for (size_t i = 0; i < n; ++i) {
      const T value = a[i];
      const T* row = columns + i * pitch + j;
      for (size_t k = 0; k < kDistanceLanes; ++k) sums[k] = Op::fold(sums[k], value - row[k], p);
    }
    for (size_t k = 0; k < kDistanceLanes; ++k) acc[j + k] = sums[k];
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

const DistanceLoops distance_loops = {
    {RL_DISTANCE(Nonzero), RL_DISTANCE(Absolute), RL_DISTANCE(Squared), RL_DISTANCE(Power),
     RL_DISTANCE(Greatest)},
    {root<float>, root<double>}};

}  // namespace rushlight::kernels::RL_ISA
