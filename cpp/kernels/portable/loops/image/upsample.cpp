#include "rushlight/kernels/portable/loops/image/upsample.h"

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
void blend_pixels(const PixelLine& line, size_t n, void* out) {
  const T* top = static_cast<const T*>(line.rows[0]);
  const T* bottom = static_cast<const T*>(line.rows[1]);
  const T above = static_cast<T>(line.row_weight[0]);
  const T below = static_cast<T>(line.row_weight[1]);
  T* y = static_cast<T*>(out);
  for (size_t i = 0; i < n; ++i) {
    const T u = static_cast<const T*>(line.left_weight)[i];
    const T v = static_cast<const T*>(line.right_weight)[i];
    const T w[] = {above * u, above * v, below * u, below * v};
    const T* a = top + line.left[i];
    const T* b = top + line.right[i];
    const T* c = bottom + line.left[i];
    const T* d = bottom + line.right[i];
    RL_VECTORIZE
    for (size_t k = 0; k < line.channels; ++k) {
      y[k] = a[k] * w[0] + b[k] * w[1] + c[k] * w[2] + d[k] * w[3];
    }
    y += line.channels;
  }
}

}  // namespace

#define RL_BOTH(f) {f<float>, f<double>}

const UpsampleLoops upsample_loops = {RL_BOTH(gather_blend), RL_BOTH(blend_each), RL_BOTH(blend),
                                      RL_BOTH(blend_pixels)};

}  // namespace rushlight::kernels::RL_ISA
