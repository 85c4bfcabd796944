#include "rushlight/kernels/portable/loops/quantization/quantize.h"

#include <math.h>

namespace rushlight::kernels::RL_ISA {
namespace {

float nearest(float x) { return rintf(x); }
double nearest(double x) { return rint(x); }

template <typename T>
void bound(T* y, size_t n, const LoopArgs* args) {
  const T low = static_cast<T>(args->i[1]);
  const T high = static_cast<T>(args->i[2]);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = y[i] < low ? low : y[i] > high ? high : y[i];
}

template <typename T>
void by_scalar(const void* const* in, void* out, size_t n, LoopArgs* args) {
  const T* x = static_cast<const T*>(in[0]);
  const T factor = static_cast<T>(args->d[0]);
  const T zero = static_cast<T>(args->i[0]);
  T* y = static_cast<T*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = nearest(x[i] * factor) + zero;
  bound(y, n, args);
}

template <typename T>
void by_channel(const void* const* in, void* out, size_t n, LoopArgs* args) {
  const T* x = static_cast<const T*>(in[0]);
  const T* scale = static_cast<const T*>(in[1]);
  const T* zero = static_cast<const T*>(in[2]);
  T* y = static_cast<T*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = nearest(x[i] * (1 / scale[i])) + zero[i];
  bound(y, n, args);
}

template <typename T>
void by_token(const void* const* in, void* out, size_t n, LoopArgs* args) {
  const T* x = static_cast<const T*>(in[0]);
  const T* scale = static_cast<const T*>(in[1]);
  const T* zero = static_cast<const T*>(in[2]);
  T* y = static_cast<T*>(out);
  // Two loops, so that product and sum are not fused into one operation.
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = x[i] * (1 / scale[i]);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = nearest(y[i] + zero[i]);
  bound(y, n, args);
}

template <typename T>
void back_by_scalar(const void* const* in, void* out, size_t n, LoopArgs* args) {
  const T* x = static_cast<const T*>(in[0]);
  const T scale = static_cast<T>(args->d[0]);
  const T zero = static_cast<T>(args->i[0]);
  T* y = static_cast<T*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = (x[i] - zero) * scale;
}

template <typename T, typename Zero>
void back(const void* const* in, void* out, size_t n, LoopArgs*) {
  const Zero* x = static_cast<const Zero*>(in[0]);
  const T* scale = static_cast<const T*>(in[1]);
  const Zero* zero = static_cast<const Zero*>(in[2]);
  T* y = static_cast<T*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = static_cast<T>(x[i] - zero[i]) * scale[i];
}

}  // namespace

const QuantizeLoops quantize_loops = {
    {by_scalar<float>, by_scalar<double>},         {by_channel<float>, by_channel<double>},
    {by_token<float>, by_token<double>},           {back_by_scalar<float>, back_by_scalar<double>},
    {back<float, int64_t>, back<double, int64_t>}, {back<float, float>, back<double, double>},
};

}  // namespace rushlight::kernels::RL_ISA
