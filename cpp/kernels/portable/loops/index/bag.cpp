#include "rushlight/kernels/portable/loops/index/bag.h"

#include "rushlight/kernel/loops/half.h"

namespace rushlight::kernels::RL_ISA {
namespace {

constexpr size_t kWidth = 32;  // columns whose sums stay in registers for all rows

// Converts the columns of a row to the type of the sums.
template <typename Acc, size_t kColumns>
const Acc* widened(const Acc* x, Acc* /*buffer*/) {
  return x;
}
template <typename Acc, size_t kColumns, typename T>
const Acc* widened(const T* x, Acc* buffer) {
  widen_all(x, buffer, kColumns);
  return buffer;
}

template <typename T, typename Acc, size_t kColumns>
void sum_columns(const void* const* rows, size_t count, const Acc* factors, size_t column,
                 Acc* acc) {
  Acc sums[kColumns];
  Acc buffer[kColumns];
  for (size_t k = 0; k < kColumns; ++k) sums[k] = acc[column + k];
  for (size_t r = 0; r < count; ++r) {
    const Acc* x = widened<Acc, kColumns>(static_cast<const T*>(rows[r]) + column, buffer);
    if (factors == nullptr) {
      for (size_t k = 0; k < kColumns; ++k) sums[k] += x[k];
    } else {
      const Acc factor = factors[r];
      for (size_t k = 0; k < kColumns; ++k) sums[k] += factor * x[k];
    }
  }
  for (size_t k = 0; k < kColumns; ++k) acc[column + k] = sums[k];
}

template <typename T, typename Acc>
void sum(const void* const* rows, size_t count, const void* factors_in, size_t n, void* acc_in) {
  const Acc* factors = static_cast<const Acc*>(factors_in);
  Acc* acc = static_cast<Acc*>(acc_in);
  constexpr size_t kNarrow = kWidth / 4;
  size_t j = 0;
  for (; j + kWidth <= n; j += kWidth) sum_columns<T, Acc, kWidth>(rows, count, factors, j, acc);
  for (; j + kNarrow <= n; j += kNarrow) sum_columns<T, Acc, kNarrow>(rows, count, factors, j, acc);
  for (; j < n; ++j) sum_columns<T, Acc, 1>(rows, count, factors, j, acc);
}

}  // namespace

const BagLoops bag_loops = {sum<float, float>, sum<double, double>, sum<Half, float>,
                            sum<BFloat, float>};

}  // namespace rushlight::kernels::RL_ISA
