#include "rushlight/kernels/portable/loops/reduction/norm.h"

namespace rushlight::kernels::RL_ISA {
namespace {

template <typename T, bool kWeight, bool kBias>
void row_with(const T* x, size_t n, const Affine& affine, const T* weight, const T* bias, T* out) {
  const T center = static_cast<T>(affine.center);
  const T scale = static_cast<T>(affine.scale);
  const T shift = static_cast<T>(affine.shift);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) {
    T value = (x[i] - center) * scale + shift;
    if (kWeight) value *= weight[i];
    if (kBias) value += bias[i];
    out[i] = value;
  }
}

template <typename T>
void row(const void* in, size_t n, const Affine& affine, const void* weight, const void* bias,
         void* out) {
  const T* x = static_cast<const T*>(in);
  const T* w = static_cast<const T*>(weight);
  const T* b = static_cast<const T*>(bias);
  T* y = static_cast<T*>(out);
  if (w != nullptr && b != nullptr) return row_with<T, true, true>(x, n, affine, w, b, y);
  if (w != nullptr) return row_with<T, true, false>(x, n, affine, w, b, y);
  if (b != nullptr) return row_with<T, false, true>(x, n, affine, w, b, y);
  row_with<T, false, false>(x, n, affine, w, b, y);
}

template <typename T>
void columns(const void* in, size_t n, const void* center, const void* scale, const void* shift,
             void* out) {
  const T* x = static_cast<const T*>(in);
  const T* c = static_cast<const T*>(center);
  const T* s = static_cast<const T*>(scale);
  const T* t = static_cast<const T*>(shift);
  T* y = static_cast<T*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = (x[i] - c[i]) * s[i] + t[i];
}

}  // namespace

const NormLoops norm_loops = {{row<float>, row<double>}, {columns<float>, columns<double>}};

}  // namespace rushlight::kernels::RL_ISA
