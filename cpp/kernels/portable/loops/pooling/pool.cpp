#include "rushlight/kernels/portable/loops/pooling/pool.h"

namespace rushlight::kernels::RL_ISA {
namespace {

template <typename T>
struct Lowest {
  static constexpr T value = -static_cast<T>(__builtin_inff());
};
template <>
struct Lowest<int64_t> {
  static constexpr int64_t value = INT64_MIN;
};

// kStride is 0 if the stride is known only at run time.
template <typename T, int kStride>
void max_strided(const T* x, int64_t stride, size_t n, int32_t at, int32_t at_stride, T* best,
                 int32_t* index) {
  const int64_t known_stride = kStride > 0 ? kStride : stride;
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) {
    const T value = x[static_cast<int64_t>(i) * known_stride];
    const bool better = (value > best[i]) | (value != value);
    best[i] = better ? value : best[i];
    index[i] = better ? at + static_cast<int32_t>(i) * at_stride : index[i];
  }
}

template <typename T>
void max(const void* in, int64_t stride, size_t n, int32_t at, int32_t at_stride, void* best_out,
         int32_t* index) {
  const T* x = static_cast<const T*>(in);
  T* best = static_cast<T*>(best_out);
  if (stride == 1) return max_strided<T, 1>(x, stride, n, at, at_stride, best, index);
  if (stride == 2) return max_strided<T, 2>(x, stride, n, at, at_stride, best, index);
  max_strided<T, 0>(x, stride, n, at, at_stride, best, index);
}

constexpr int64_t kMaxLanes = 16;

// Folds n elements, starting at position `at`, into the best element. Long runs find the maximum
// first, and then its position.
template <typename T>
void max_run(const T* x, int64_t n, int32_t at, T* best_out, int32_t* index) {
  T best = *best_out;
  int32_t best_at = *index;
  int64_t i = 0;
  if (n >= 2 * kMaxLanes) {
    T lanes[kMaxLanes];
    int32_t odd[kMaxLanes] = {};  // nonzero if an element is NaN
    for (int64_t k = 0; k < kMaxLanes; ++k) lanes[k] = best;
    for (; i + kMaxLanes <= n; i += kMaxLanes) {
      for (int64_t k = 0; k < kMaxLanes; ++k) {
        const T value = x[i + k];
        lanes[k] = value > lanes[k] ? value : lanes[k];
        odd[k] |= value != value;
      }
    }
    T greatest = best;
    int32_t any_odd = 0;
    for (int64_t k = 0; k < kMaxLanes; ++k) {
      greatest = lanes[k] > greatest ? lanes[k] : greatest;
      any_odd |= odd[k];
    }
    if (any_odd != 0) {
      i = 0;
    } else if (greatest > best) {
      best = greatest;
      int64_t first = 0;
      while (x[first] != greatest) ++first;
      best_at = at + static_cast<int32_t>(first);
    }
  }
  for (; i < n; ++i) {
    const T value = x[i];
    const bool better = (value > best) | (value != value);
    best = better ? value : best;
    best_at = better ? at + static_cast<int32_t>(i) : best_at;
  }
  *best_out = best;
  *index = best_at;
}

template <typename T>
void max_windows(const void* in, int64_t first, int64_t last, const int32_t* begin,
                 const int32_t* end, size_t n, int32_t at, void* best_out, int32_t* index) {
  const T* columns = static_cast<const T*>(in);
  T* best = static_cast<T*>(best_out);
  for (size_t i = 0; i < n; ++i) {
    const int64_t b = begin[i] < first ? first : begin[i];
    const int64_t e = end[i] > last ? last : end[i];
    if (b < e) {
      max_run(columns + (b - first), e - b, at + static_cast<int32_t>(b), best + i, index + i);
    }
  }
}

template <typename T>
void start(void* best_out, size_t n) {
  T* best = static_cast<T*>(best_out);
  for (size_t i = 0; i < n; ++i) best[i] = Lowest<T>::value;
}

template <typename T>
T plus(T a, T b) {
  return a + b;
}
template <>
int64_t plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

template <typename T>
void add(const void* in, int64_t stride, size_t n, void* acc_out) {
  const T* x = static_cast<const T*>(in);
  T* acc = static_cast<T*>(acc_out);
  if (stride == 1) {
    RL_VECTORIZE
    for (size_t i = 0; i < n; ++i) acc[i] = plus(acc[i], x[i]);
    return;
  }
  for (size_t i = 0; i < n; ++i) acc[i] = plus(acc[i], x[static_cast<int64_t>(i) * stride]);
}

constexpr int64_t kSumLanes = 16;

template <typename T>
T sum(const T* x, int64_t n) {
  T result = 0;
  int64_t i = 0;
  if (n >= 2 * kSumLanes) {
    T lanes[kSumLanes] = {};
    for (; i + kSumLanes <= n; i += kSumLanes) {
      for (int64_t k = 0; k < kSumLanes; ++k) lanes[k] = plus(lanes[k], x[i + k]);
    }
    for (int64_t k = 0; k < kSumLanes; ++k) result = plus(result, lanes[k]);
  }
  for (; i < n; ++i) result = plus(result, x[i]);
  return result;
}

template <typename T>
void windows(const void* in, int64_t first, int64_t last, const int32_t* begin, const int32_t* end,
             size_t n, void* acc_out) {
  const T* columns = static_cast<const T*>(in);
  T* acc = static_cast<T*>(acc_out);
  for (size_t i = 0; i < n; ++i) {
    const int64_t b = begin[i] < first ? first : begin[i];
    const int64_t e = end[i] > last ? last : end[i];
    if (b < e) acc[i] = plus(acc[i], sum(columns + (b - first), e - b));
  }
}

template <typename T>
T quotient(T sum, T count, T factor) {
  return sum / (count * factor);
}
template <>
int64_t quotient(int64_t sum, int64_t count, int64_t factor) {
  const int64_t divisor =
      static_cast<int64_t>(static_cast<uint64_t>(count) * static_cast<uint64_t>(factor));
  // The one quotient that does not fit wraps around; a divisor that wrapped to 0 gives 0.
  if (divisor == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(sum));
  return divisor == 0 ? 0 : sum / divisor;
}

template <typename T>
void divide(const void* acc_in, const void* counts_in, const void* factor_in, size_t n,
            void* out_v) {
  const T* acc = static_cast<const T*>(acc_in);
  const T* counts = static_cast<const T*>(counts_in);
  const T factor = *static_cast<const T*>(factor_in);
  T* out = static_cast<T*>(out_v);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) out[i] = quotient(acc[i], counts[i], factor);
}

}  // namespace

#define RL_POOL(f) {f<float>, f<double>, f<int64_t>, nullptr, nullptr}

const PoolLoops pool_loops = {RL_POOL(max), RL_POOL(max_windows), RL_POOL(start),
                              RL_POOL(add), RL_POOL(windows),     RL_POOL(divide)};

}  // namespace rushlight::kernels::RL_ISA
