#include "rushlight/kernels/portable/loops/reduction/reduce.h"

namespace rushlight::kernels::RL_ISA {
namespace {

// The type of the accumulator for an input type.
template <typename T>
struct AccumulatorOf {
  using type = int64_t;
};
template <>
struct AccumulatorOf<float> {
  using type = double;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};
template <typename T>
using Acc = typename AccumulatorOf<T>::type;

double plus(double a, double b) { return a + b; }
double times(double a, double b) { return a * b; }
int64_t plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t times(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

struct Sum {
  template <typename A>
  static A fold(A acc, A x) {
    return plus(acc, x);
  }
};
struct Prod {
  template <typename A>
  static A fold(A acc, A x) {
    return times(acc, x);
  }
};
struct Max {
  template <typename A>
  static A fold(A acc, A x) {
    return x > acc || x != x ? x : acc;
  }
};
struct Min {
  template <typename A>
  static A fold(A acc, A x) {
    return x < acc || x != x ? x : acc;
  }
};

// The number of independent accumulators, so that the compiler can use vectors without changing the
// order of one accumulator's sums.
constexpr size_t kLanes = 32;

template <typename Op, typename T>
void row(const void* in, size_t n, void* acc, const double*) {
  using A = Acc<T>;
  const T* x = static_cast<const T*>(in);
  A result = *static_cast<A*>(acc);
  size_t i = 0;
  if (n >= 2 * kLanes) {
    A lanes[kLanes];
    for (size_t k = 0; k < kLanes; ++k) lanes[k] = static_cast<A>(x[k]);
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      for (size_t k = 0; k < kLanes; ++k) lanes[k] = Op::fold(lanes[k], static_cast<A>(x[i + k]));
    }
    for (size_t k = 0; k < kLanes; ++k) result = Op::fold(result, lanes[k]);
  }
  for (; i < n; ++i) result = Op::fold(result, static_cast<A>(x[i]));
  *static_cast<A*>(acc) = result;
}

// A sum of at most this many terms is exact enough in float; longer sums are in double.
constexpr size_t kShortSum = 8;

void float_sum_row(const void* in, size_t n, void* acc, const double*) {
  const float* x = static_cast<const float*>(in);
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes * kShortSum <= n; i += kLanes * kShortSum) {
    float sums[kLanes];
    for (size_t k = 0; k < kLanes; ++k) sums[k] = x[i + k];
    for (size_t j = 1; j < kShortSum; ++j) {
      for (size_t k = 0; k < kLanes; ++k) sums[k] += x[i + j * kLanes + k];
    }
    for (size_t k = 0; k < kLanes; ++k) lanes[k] += static_cast<double>(sums[k]);
  }
  double result = *static_cast<double*>(acc);
  if (i > 0) {
    for (size_t k = 0; k < kLanes; ++k) result += lanes[k];
  }
  for (; i < n; ++i) result += static_cast<double>(x[i]);
  *static_cast<double*>(acc) = result;
}

// The maximum or minimum of a row stays in the row's own type until the end.
template <typename Op, typename T>
void extreme_row(const void* in, size_t n, void* acc, const double*) {
  using A = Acc<T>;
  const T* x = static_cast<const T*>(in);
  A result = *static_cast<A*>(acc);
  size_t i = 0;
  if (n >= 2 * kLanes) {
    T lanes[kLanes];
    for (size_t k = 0; k < kLanes; ++k) lanes[k] = x[k];
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      for (size_t k = 0; k < kLanes; ++k) lanes[k] = Op::fold(lanes[k], x[i + k]);
    }
    for (size_t k = 0; k < kLanes; ++k) result = Op::fold(result, static_cast<A>(lanes[k]));
  }
  for (; i < n; ++i) result = Op::fold(result, static_cast<A>(x[i]));
  *static_cast<A*>(acc) = result;
}

template <typename Op, typename T>
void column(const void* in, size_t n, void* acc, const double*) {
  using A = Acc<T>;
  const T* x = static_cast<const T*>(in);
  A* y = static_cast<A*>(acc);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = Op::fold(y[i], static_cast<A>(x[i]));
}

template <typename T>
void deviation_row(const void* in, size_t n, void* acc, const double* mean) {
  const T* x = static_cast<const T*>(in);
  double lanes[kLanes] = {};
  const double m = *mean;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) {
      const double d = static_cast<double>(x[i + k]) - m;
      lanes[k] += d * d;
    }
  }
  double result = *static_cast<double*>(acc);
  for (size_t k = 0; k < kLanes; ++k) result += lanes[k];
  for (; i < n; ++i) result += (static_cast<double>(x[i]) - m) * (static_cast<double>(x[i]) - m);
  *static_cast<double*>(acc) = result;
}

template <typename T>
void deviation_column(const void* in, size_t n, void* acc, const double* mean) {
  const T* x = static_cast<const T*>(in);
  double* y = static_cast<double*>(acc);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(x[i]) - mean[i];
    y[i] += d * d;
  }
}

template <typename Op, typename T>
size_t arg_row(const void* in, size_t n) {
  using A = Acc<T>;
  const T* x = static_cast<const T*>(in);
  A best = static_cast<A>(x[0]);
  extreme_row<Op, T>(in, n, &best, nullptr);
  const T wanted = static_cast<T>(best);
  size_t i = 0;
  if (wanted != wanted) {
    while (i + 1 < n && x[i] == x[i]) ++i;
  } else {
    while (i + 1 < n && x[i] != wanted) ++i;
  }
  return i;
}

struct Greater {
  template <typename A>
  static bool better(A x, A best) {
    return x > best || (x != x && best == best);
  }
};
struct Less {
  template <typename A>
  static bool better(A x, A best) {
    return x < best || (x != x && best == best);
  }
};

template <typename Order, typename T>
void arg_column(const void* in, size_t n, void* best, int64_t* index, int64_t position) {
  using A = Acc<T>;
  const T* x = static_cast<const T*>(in);
  A* b = static_cast<A*>(best);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) {
    const A value = static_cast<A>(x[i]);
    const bool better = Order::better(value, b[i]);
    b[i] = better ? value : b[i];
    index[i] = better ? position : index[i];
  }
}

template <typename T>
void cumulate_row(const void* in, size_t n, void* acc, void* out) {
  using A = Acc<T>;
  const T* x = static_cast<const T*>(in);
  A* y = static_cast<A*>(out);
  A sum = *static_cast<A*>(acc);
  for (size_t i = 0; i < n; ++i) y[i] = sum = plus(sum, static_cast<A>(x[i]));
  *static_cast<A*>(acc) = sum;
}

template <typename T>
void cumulate_column(const void* in, size_t n, void* acc, void* out) {
  using A = Acc<T>;
  const T* x = static_cast<const T*>(in);
  A* sum = static_cast<A*>(acc);
  A* y = static_cast<A*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = sum[i] = plus(sum[i], static_cast<A>(x[i]));
}

// Sums of integers with a floating result are in double.
constexpr bool keeps_sums(ComputeType type) {
  if (type == kF32) return keeps_compute(kF32);
  return selection::has_integral() || (type == kF64 && keeps_compute(kF64));
}

}  // namespace

// Integers are int64 and bools are bytes; int32 is never used. A column of double is kept for the
// accumulators of float32.
// clang-format off
#define RL_SUM(type, loop) (keeps_sums(type) ? &loop : nullptr)
#define RL_ROW(f, Op) \
  {RL_SUM(kF32, (f<Op, float>)), RL_SUM(kF64, (f<Op, double>)), RL_SUM(kI64, (f<Op, int64_t>)), \
   nullptr, RL_SUM(kBool, (f<Op, uint8_t>))}
#define RL_COLUMN(Op) \
  {RL_SUM(kF32, (column<Op, float>)), column<Op, double>, RL_SUM(kI64, (column<Op, int64_t>)), \
   nullptr, RL_SUM(kBool, (column<Op, uint8_t>))}
#define RL_ARG(f, Op) \
  {RL_SUM(kF32, (f<Op, float>)), RL_SUM(kF64, (f<Op, double>)), RL_SUM(kI64, (f<Op, int64_t>))}
#define RL_PLAIN(f) \
  {RL_SUM(kF32, (f<float>)), RL_SUM(kF64, (f<double>)), RL_SUM(kI64, (f<int64_t>))}
#define RL_FLOAT(f) {RL_KEEP(kF32, (f<float>)), RL_KEEP(kF64, (f<double>))}
// clang-format on

const ReduceLoops reduce_sum = {
    {RL_SUM(kF32, (float_sum_row)), RL_SUM(kF64, (row<Sum, double>)),
     RL_SUM(kI64, (row<Sum, int64_t>)), nullptr, RL_SUM(kBool, (row<Sum, uint8_t>))},
    RL_COLUMN(Sum)};
const ReduceLoops reduce_prod = {RL_ROW(row, Prod), RL_COLUMN(Prod)};
const ReduceLoops reduce_max = {RL_ROW(extreme_row, Max), RL_COLUMN(Max)};
const ReduceLoops reduce_min = {RL_ROW(extreme_row, Min), RL_COLUMN(Min)};
const ReduceLoops reduce_squared_deviation = {RL_FLOAT(deviation_row), RL_FLOAT(deviation_column)};
const ArgLoops arg_max = {RL_ARG(arg_row, Max), RL_ARG(arg_column, Greater)};
const ArgLoops arg_min = {RL_ARG(arg_row, Min), RL_ARG(arg_column, Less)};
const CumulateLoops cumulate_sum = {RL_PLAIN(cumulate_row), RL_PLAIN(cumulate_column)};

}  // namespace rushlight::kernels::RL_ISA
