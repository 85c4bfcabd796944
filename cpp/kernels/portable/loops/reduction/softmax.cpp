#include "rushlight/kernels/portable/loops/reduction/softmax.h"

#include "rushlight/kernel/loops/vec_math.h"

namespace rushlight::kernels::RL_ISA {
namespace {

constexpr size_t kSums = 32;
// A sum of at most this many terms is exact enough in the type of the terms; longer sums are in
// double.
constexpr size_t kBlock = 2048;

template <typename T>
double block_sum_exp(const T* x, size_t n, T max, T* out) {
  T sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    RL_VECTORIZE
    for (size_t k = 0; k < kSums; ++k) {
      const T term = vexp(x[i + k] - max);
      if (out != nullptr) out[i + k] = term;
      sums[k] += term;
    }
  }
  // The rest, in one more vector that is padded with elements that add nothing.
  T rest[kSums];
  for (size_t k = 0; k < kSums; ++k) rest[k] = i + k < n ? x[i + k] - max : static_cast<T>(-kInf);
  for (size_t k = 0; k < kSums; ++k) rest[k] = vexp(rest[k]);
  for (size_t k = 0; k < kSums; ++k) sums[k] += rest[k];
  if (out != nullptr) {
    for (size_t k = 0; i + k < n; ++k) out[i + k] = rest[k];
  }
  for (size_t width = kSums / 2; width > 0; width /= 2) {
    for (size_t k = 0; k < width; ++k) sums[k] += sums[k + width];
  }
  return static_cast<double>(sums[0]);
}

template <typename T>
double sum_exp(const void* in, size_t n, double max, void* out) {
  const T* x = static_cast<const T*>(in);
  T* y = static_cast<T*>(out);
  const T m = static_cast<T>(max);
  double sum = 0.0;
  for (size_t done = 0; done < n; done += kBlock) {
    const size_t count = n - done < kBlock ? n - done : kBlock;
    // Two copies of the loop: with and without a store.
    sum += y == nullptr ? block_sum_exp<T>(x + done, count, m, nullptr)
                        : block_sum_exp<T>(x + done, count, m, y + done);
  }
  return sum;
}

template <typename T>
void scale(void* out, size_t n, double factor) {
  T* y = static_cast<T*>(out);
  const T f = static_cast<T>(factor);
  for (size_t i = 0; i < n; ++i) y[i] *= f;
}

template <typename T>
void exp_scale(const void* in, size_t n, double max, double factor, void* out) {
  const T* x = static_cast<const T*>(in);
  T* y = static_cast<T*>(out);
  const T m = static_cast<T>(max);
  const T f = static_cast<T>(factor);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = vexp(x[i] - m) * f;
}

template <typename T>
void subtract(const void* in, size_t n, double max, double log_sum, void* out) {
  const T* x = static_cast<const T*>(in);
  T* y = static_cast<T*>(out);
  const T m = static_cast<T>(max);
  const T l = static_cast<T>(log_sum);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = x[i] - m - l;
}

template <typename T>
void max_columns(const void* in, size_t n, void* max) {
  const T* x = static_cast<const T*>(in);
  T* m = static_cast<T*>(max);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) m[i] = (x[i] > m[i]) | (x[i] != x[i]) ? x[i] : m[i];
}

template <typename T>
void sum_columns(const void* in, size_t n, const void* max, void* sum) {
  const T* x = static_cast<const T*>(in);
  const T* m = static_cast<const T*>(max);
  T* s = static_cast<T*>(sum);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) s[i] += vexp(x[i] - m[i]);
}

template <typename T>
void invert(void* sum, size_t n) {
  T* s = static_cast<T*>(sum);
  for (size_t i = 0; i < n; ++i) s[i] = static_cast<T>(1) / s[i];
}

template <typename T>
void log_of(void* sum, size_t n) {
  T* s = static_cast<T*>(sum);
  for (size_t i = 0; i < n; ++i) s[i] = vlog(s[i]);
}

template <typename T>
void exp_scale_columns(const void* in, size_t n, const void* max, const void* factor, void* out) {
  const T* x = static_cast<const T*>(in);
  const T* m = static_cast<const T*>(max);
  const T* f = static_cast<const T*>(factor);
  T* y = static_cast<T*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = vexp(x[i] - m[i]) * f[i];
}

template <typename T>
void subtract_columns(const void* in, size_t n, const void* max, const void* log_sum, void* out) {
  const T* x = static_cast<const T*>(in);
  const T* m = static_cast<const T*>(max);
  const T* l = static_cast<const T*>(log_sum);
  T* y = static_cast<T*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = x[i] - m[i] - l[i];
}

}  // namespace

#define RL_BOTH(f) {RL_KEEP(kF32, f<float>), RL_KEEP(kF64, f<double>)}

const SoftmaxLoops softmax_loops = {
    RL_BOTH(sum_exp),     RL_BOTH(scale),  RL_BOTH(exp_scale),        RL_BOTH(max_columns),
    RL_BOTH(sum_columns), RL_BOTH(invert), RL_BOTH(exp_scale_columns)};
const LogSoftmaxLoops log_softmax_loops = {RL_BOTH(subtract), RL_BOTH(log_of),
                                           RL_BOTH(subtract_columns)};

}  // namespace rushlight::kernels::RL_ISA
