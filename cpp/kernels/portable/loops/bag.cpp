#include "rushlight/kernels/portable/loops/bag.h"

#include "rushlight/kernels/portable/loops/half.h"

namespace rushlight::kernels::RL_ISA {
namespace {

constexpr size_t kWidth = 32;  // columns that stay in registers over all rows

float value(float x) { return x; }
double value(double x) { return x; }
float value(Half x) { return widen(x); }
float value(BFloat x) { return widen(x); }

template <typename T, typename Acc, size_t kColumns>
void sum_columns(const void* const* rows, size_t count, const Acc* factors, size_t column,
                 Acc* acc) {
  Acc sums[kColumns];
  for (size_t k = 0; k < kColumns; ++k) sums[k] = acc[column + k];
  for (size_t r = 0; r < count; ++r) {
    const T* x = static_cast<const T*>(rows[r]) + column;
    if (factors == nullptr) {
      for (size_t k = 0; k < kColumns; ++k) sums[k] += value(x[k]);
    } else {
      const Acc factor = factors[r];
      for (size_t k = 0; k < kColumns; ++k) sums[k] += factor * value(x[k]);
    }
  }
  for (size_t k = 0; k < kColumns; ++k) acc[column + k] = sums[k];
}

template <typename T, typename Acc>
void sum(const void* const* rows, size_t count, const void* factors_in, size_t n, void* acc_in) {
  const Acc* factors = static_cast<const Acc*>(factors_in);
  Acc* acc = static_cast<Acc*>(acc_in);
  size_t j = 0;
  for (; j + kWidth <= n; j += kWidth) sum_columns<T, Acc, kWidth>(rows, count, factors, j, acc);
  for (; j < n; ++j) sum_columns<T, Acc, 1>(rows, count, factors, j, acc);
}

}  // namespace

const BagLoops bag_loops = {sum<float, float>, sum<double, double>, sum<Half, float>,
                            sum<BFloat, float>};

}  // namespace rushlight::kernels::RL_ISA
