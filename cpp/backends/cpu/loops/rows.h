// Inner loops of norms, softmax and reductions, in float32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/backends/cpu/kernels/rows.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::cpu {

// What is known of columns side by side lies in arrays of so many: columns are worked on by blocks.
constexpr int64_t kColumnBlock = 64;

struct NormLoops {
  // Rows begin..end-1.
  void (*rows)(const Norm& norm, int64_t begin, int64_t end);
  // Of n elements: sum and, given the mean, sum of squares around it.
  double (*sum)(const float* x, int64_t n);
  double (*squares)(const float* x, int64_t n, float mean);
  // out[i] = (x[i] - center) * factor + shift
  void (*affine)(const float* x, int64_t n, float center, float factor, float shift, float* out);
  // The same of at most kColumnBlock columns, rows `step` apart; every other array has kColumnBlock
  // floats.
  void (*column_sums)(const float* x, int64_t step, int64_t rows, int64_t columns, float* sums);
  void (*column_squares)(const float* x, int64_t step, int64_t rows, int64_t columns,
                         const float* means, float* squares);
  void (*column_affine)(const float* x, int64_t step, int64_t rows, int64_t columns,
                        const float* centers, const float* factors, const float* shifts,
                        float* out);
};

struct SoftmaxLoops {
  void (*row)(const float* x, int64_t n, float* out, bool log);
  // Of at most kColumnBlock columns, rows `step` apart.
  void (*columns)(const float* x, int64_t step, int64_t rows, int64_t columns, float* out,
                  bool log);
};

struct ReduceLoops {
  float (*row)(const float* x, int64_t n, Reduction kind);
  void (*columns)(const float* x, int64_t step, int64_t rows, int64_t columns, Reduction kind,
                  float* out);
};

RL_LOOPS(NormLoops, norm_loops)
RL_LOOPS(SoftmaxLoops, softmax_loops)
RL_LOOPS(ReduceLoops, reduce_loops)

}  // namespace rushlight::cpu
