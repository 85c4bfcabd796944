#include "rushlight/kernels/portable/loops/upsample.h"

namespace rushlight::kernels::RL_ISA {
namespace {

template <typename T>
void gather_blend(const void* row_in, const int32_t* left, const int32_t* right,
                  const void* left_weight, const void* right_weight, size_t n, void* out) {
  const T* row = static_cast<const T*>(row_in);
  const T* u = static_cast<const T*>(left_weight);
  const T* v = static_cast<const T*>(right_weight);
  T* y = static_cast<T*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = row[left[i]] * u[i] + row[right[i]] * v[i];
}

template <typename T>
void blend_each(const void* a_in, const void* b_in, const void* a_weight, const void* b_weight,
                size_t n, void* out) {
  const T* a = static_cast<const T*>(a_in);
  const T* b = static_cast<const T*>(b_in);
  const T* u = static_cast<const T*>(a_weight);
  const T* v = static_cast<const T*>(b_weight);
  T* y = static_cast<T*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = a[i] * u[i] + b[i] * v[i];
}

template <typename T>
void blend(const void* a_in, const void* b_in, double a_weight, double b_weight, size_t n,
           void* out) {
  const T* a = static_cast<const T*>(a_in);
  const T* b = static_cast<const T*>(b_in);
  const T u = static_cast<T>(a_weight);
  const T v = static_cast<T>(b_weight);
  T* y = static_cast<T*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = a[i] * u + b[i] * v;
}

template <typename T>
void blend_four(const Neighbours& neighbours, size_t n, void* out) {
  const T* a = static_cast<const T*>(neighbours.at[0]);
  const T* b = static_cast<const T*>(neighbours.at[1]);
  const T* c = static_cast<const T*>(neighbours.at[2]);
  const T* d = static_cast<const T*>(neighbours.at[3]);
  T w[4];
  for (int k = 0; k < 4; ++k) w[k] = static_cast<T>(neighbours.weight[k]);
  T* y = static_cast<T*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = a[i] * w[0] + b[i] * w[1] + c[i] * w[2] + d[i] * w[3];
}

}  // namespace

#define RL_BOTH(f) {f<float>, f<double>}

const UpsampleLoops upsample_loops = {RL_BOTH(gather_blend), RL_BOTH(blend_each), RL_BOTH(blend),
                                      RL_BOTH(blend_four)};

}  // namespace rushlight::kernels::RL_ISA
