#include "rushlight/engine/loops/rows/rows.h"

#include <math.h>

#include "rushlight/engine/loops/vectors/edge.h"

namespace rushlight::engine::RL_ISA {
using namespace ::rushlight::kernels::RL_ISA;

namespace {

// Sums of this many floats are exact enough in float; longer ones are added up in double.
constexpr int64_t kSumBlock = 4096;
constexpr int64_t kSums = 4;  // accumulators, to hide the latency of additions

// The sum of term(i, lanes), a vector from element i on, over n elements.
template <typename Term>
inline double sum_terms(int64_t n, Term term) {
  double total = 0;
  for (int64_t start = 0; start < n; start += kSumBlock) {
    const int64_t end = n - start < kSumBlock ? n : start + kSumBlock;
    Vec sums[kSums] = {};
    int64_t i = start;
    for (; i + kSums * kLanes <= end; i += kSums * kLanes) {
#pragma GCC unroll 4
      for (int64_t s = 0; s < kSums; ++s) sums[s] += term(i + s * kLanes, kLanes);
    }
    for (; i + kLanes <= end; i += kLanes) sums[0] += term(i, kLanes);
    if (i < end) sums[1] += term(i, end - i);
    total += static_cast<double>(sum_lanes((sums[0] + sums[1]) + (sums[2] + sums[3])));
  }
  return total;
}

// Calls body(i, lanes) for each vector of n elements; the last may have fewer lanes.
template <typename Body>
inline void for_vectors(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, kLanes);
  if (i < n) body(i, n - i);
}

double sum(const float* x, int64_t n) {
  return sum_terms(n, [=](int64_t i, int64_t count) { return load_some(x + i, count); });
}

// The term (x - mean)^2; lanes beyond the end subtract 0.
double squares(const float* x, int64_t n, float mean) {
  const Vec center = splat(mean);
  float edge[kLanes] = {};
  for (int64_t i = 0; i < n % kLanes; ++i) edge[i] = mean;
  const Vec last_center = load(edge);
  return sum_terms(n, [=](int64_t i, int64_t count) {
    const Vec d = load_some(x + i, count) - (count == kLanes ? center : last_center);
    return d * d;
  });
}

template <bool kScale, bool kShift>
void normalize_elements(const float* x, int64_t n, float mean, float factor, const float* scale,
                        const float* shift, float* out) {
  for_vectors(n, [=](int64_t i, int64_t count) {
    Vec v = (load_some(x + i, count) - mean) * factor;
    if (kScale) v *= load_some(scale + i, count);
    if (kShift) v += load_some(shift + i, count);
    store_some(out + i, v, count);
  });
}

// False if is_exact() is false.
bool normalize_row(const Norm& norm, int64_t row) {
  const int64_t n = norm.width;
  const float* const x = norm.in + row * n;
  float* const out = norm.out + row * n;
  const double width = static_cast<double>(n);
  const float mean = norm.rms ? 0.0f : static_cast<float>(sum(x, n) / width);
  const double around = squares(x, n, mean);
  if (!is_exact(static_cast<double>(mean), around, width)) return false;
  const double variance = around / width;
  const float factor = static_cast<float>(1.0 / sqrt(variance + static_cast<double>(norm.epsilon)));
  if (norm.scale != nullptr && norm.shift != nullptr) {
    normalize_elements<true, true>(x, n, mean, factor, norm.scale, norm.shift, out);
  } else if (norm.scale != nullptr) {
    normalize_elements<true, false>(x, n, mean, factor, norm.scale, x, out);
  } else if (norm.shift != nullptr) {
    normalize_elements<false, true>(x, n, mean, factor, x, norm.shift, out);
  } else {
    normalize_elements<false, false>(x, n, mean, factor, x, x, out);
  }
  return true;
}

int64_t rows(const Norm& norm, int64_t begin, int64_t end) {
  int64_t row = begin;
  while (row < end && normalize_row(norm, row)) ++row;
  return row;
}

void affine(const float* x, int64_t n, float center, float factor, float shift, float* out) {
  for_vectors(n, [=](int64_t i, int64_t count) {
    store_some(out + i, (load_some(x + i, count) - center) * factor + shift, count);
  });
}

// --- columns ------------------------------------------------------------------------------------

constexpr int64_t kRowBlock = 256;  // as kSumBlock, for sums with one accumulator

// sums[j] = the sum of term(vector, j) over the rows, for kVecs vectors of columns at once.
template <int kVecs, typename Term>
inline void sum_columns(const float* x, int64_t stride, int64_t rows, int64_t lanes, float* sums,
                        int64_t column, Term term) {
  double wide[kVecs * kLanes] = {};
  for (int64_t start = 0; start < rows; start += kRowBlock) {
    const int64_t end = rows - start < kRowBlock ? rows : start + kRowBlock;
    Vec block[kVecs] = {};
    for (int64_t i = start; i < end; ++i) {
      const float* const row = x + i * stride + column;
#pragma GCC unroll 8
      for (int64_t v = 0; v < kVecs; ++v) {
        block[v] += term(load_some(row + v * kLanes, lanes), column + v * kLanes);
      }
    }
    for (int64_t k = 0; k < kVecs * kLanes; ++k) {
      wide[k] += static_cast<double>(block[k / kLanes][k % kLanes]);
    }
  }
  for (int64_t k = 0; k < kVecs * kLanes; ++k) sums[column + k] = static_cast<float>(wide[k]);
}

// `sums` has kColumnBlock floats.
template <typename Term>
inline void add_columns(const float* x, int64_t stride, int64_t rows, int64_t columns, float* sums,
                        Term term) {
  int64_t j = 0;
  for (; j + 4 * kLanes <= columns; j += 4 * kLanes) {
    sum_columns<4>(x, stride, rows, kLanes, sums, j, term);
  }
  for (; j + kLanes <= columns; j += kLanes) {
    sum_columns<1>(x, stride, rows, kLanes, sums, j, term);
  }
  if (j < columns) sum_columns<1>(x, stride, rows, columns - j, sums, j, term);
}

void column_sums(const float* x, int64_t stride, int64_t rows, int64_t columns, float* sums) {
  add_columns(x, stride, rows, columns, sums, [](Vec v, int64_t) { return v; });
}

void column_squares(const float* x, int64_t stride, int64_t rows, int64_t columns,
                    const float* means, float* squares) {
  add_columns(x, stride, rows, columns, squares, [=](Vec v, int64_t j) {
    const Vec d = v - load(means + j);
    return d * d;
  });
}

void column_affine(const float* x, int64_t stride, int64_t rows, int64_t columns,
                   const float* centers, const float* factors, const float* shifts, float* out) {
  for (int64_t i = 0; i < rows; ++i) {
    const float* const row = x + i * stride;
    float* const to = out + i * stride;
    for_vectors(columns, [=](int64_t j, int64_t count) {
      const Vec v = load_some(row + j, count) - load(centers + j);
      store_some(to + j, v * load(factors + j) + load(shifts + j), count);
    });
  }
}

}  // namespace

const NormLoops norm_loops = {rows,           sum,          squares, affine, column_sums,
                              column_squares, column_affine};

}  // namespace rushlight::engine::RL_ISA
