// Inner loops of norms, softmax and reductions, in float32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/engine/types/rows.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

// Columns are processed in blocks of this many, whose sums are held in arrays of this length.
constexpr int64_t kColumnBlock = 64;

// If the squares around the mean are this small beside it, they may come from the mean's own
// rounding error.
constexpr double kLeastSpread = 0x1p-14;

// Whether the loops' variance is exact enough, considering the mean that they subtracted. Static,
// so that each instruction set has its own copy.
static inline bool is_exact(double mean, double squares, double count) {
  const double spread = squares / count;
  return spread < __builtin_inf() && (spread == 0.0 || spread > mean * mean * kLeastSpread);
}

struct NormLoops {
  // Normalizes rows begin..end-1 up to the first one for which is_exact() is false; returns its
  // number, or `end`.
  int64_t (*rows)(const Norm& norm, int64_t begin, int64_t end);
  // The sum of n elements, and the sum of their squares around a mean.
  double (*sum)(const float* x, int64_t n);
  double (*squares)(const float* x, int64_t n, float mean);
  // out[i] = (x[i] - center) * factor + shift
  void (*affine)(const float* x, int64_t n, float center, float factor, float shift, float* out);
  // The same for at most kColumnBlock columns of rows that are `stride` apart; every other array
  // has kColumnBlock floats.
  void (*column_sums)(const float* x, int64_t stride, int64_t rows, int64_t columns, float* sums);
  void (*column_squares)(const float* x, int64_t stride, int64_t rows, int64_t columns,
                         const float* means, float* squares);
  void (*column_affine)(const float* x, int64_t stride, int64_t rows, int64_t columns,
                        const float* centers, const float* factors, const float* shifts,
                        float* out);
};

struct SoftmaxLoops {
  void (*row)(const float* x, int64_t n, float* out, bool log);
  // For at most kColumnBlock columns of rows that are `stride` apart.
  void (*columns)(const float* x, int64_t stride, int64_t rows, int64_t columns, float* out,
                  bool log);
};

struct ReduceLoops {
  float (*row)(const float* x, int64_t n, Reduction kind);
  void (*columns)(const float* x, int64_t stride, int64_t rows, int64_t columns, Reduction kind,
                  float* out);
};

RL_LOOPS(NormLoops, norm_loops)
RL_LOOPS(SoftmaxLoops, softmax_loops)
RL_LOOPS(ReduceLoops, reduce_loops)

}  // namespace rushlight::engine
