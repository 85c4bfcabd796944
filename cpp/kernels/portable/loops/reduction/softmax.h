// Inner loops of softmax and log-softmax, along a row or over adjacent rows (columns).
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/kernels/portable/loops/elementwise/convert.h"

namespace rushlight::kernels {

// x, out, max and factors have the type of the table's row: [0] is float, [1] double (kF32, kF64).
// nullptr for a type that this build leaves out (kernel/selection.h).
constexpr size_t kSoftmaxTypes = 2;

struct SoftmaxLoops {
  // Returns the sum of e^(x[i] - max). Writes the terms to `out`, which may be x, unless it is
  // nullptr.
  double (*sum_exp[kSoftmaxTypes])(const void* x, size_t n, double max, void* out);
  // out[i] *= factor
  void (*scale[kSoftmaxTypes])(void* out, size_t n, double factor);
  // out[i] = e^(x[i] - max) * factor
  void (*exp_scale[kSoftmaxTypes])(const void* x, size_t n, double max, double factor, void* out);

  // max[i] = the greater of max[i] and x[i]; NaN is the greatest.
  void (*max_columns[kSoftmaxTypes])(const void* x, size_t n, void* max);
  // sum[i] += e^(x[i] - max[i])
  void (*sum_columns[kSoftmaxTypes])(const void* x, size_t n, const void* max, void* sum);
  // sum[i] = 1 / sum[i]
  void (*invert[kSoftmaxTypes])(void* sum, size_t n);
  // Like exp_scale, with separate numbers for each element.
  void (*exp_scale_columns[kSoftmaxTypes])(const void* x, size_t n, const void* max,
                                           const void* factor, void* out);
};

// What log-softmax has in place of scale, exp_scale, invert and exp_scale_columns.
struct LogSoftmaxLoops {
  // out[i] = x[i] - max - log_sum
  void (*subtract[kSoftmaxTypes])(const void* x, size_t n, double max, double log_sum, void* out);
  // sum[i] = log(sum[i])
  void (*log[kSoftmaxTypes])(void* sum, size_t n);
  // Like subtract, with separate numbers for each element.
  void (*subtract_columns[kSoftmaxTypes])(const void* x, size_t n, const void* max,
                                          const void* log_sum, void* out);
};

RL_LOOPS(SoftmaxLoops, softmax_loops)
RL_LOOPS(LogSoftmaxLoops, log_softmax_loops)

}  // namespace rushlight::kernels
