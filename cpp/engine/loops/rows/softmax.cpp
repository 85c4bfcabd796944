#include "rushlight/engine/loops/rows/rows.h"

#include "rushlight/engine/loops/vectors/exp.h"
#include "rushlight/kernel/loops/vec_math.h"

namespace rushlight::engine::RL_ISA {
using namespace ::rushlight::kernels::RL_ISA;

namespace {

constexpr int64_t kUnroll = 4;

// Loads the first n lanes; the others are -infinity, which changes neither the maximum nor the sum.
inline Vec load_part(const float* p, int64_t n) {
  IntVec lanes;
#pragma GCC unroll 16
  for (int32_t i = 0; i < static_cast<int32_t>(kLanes); ++i) lanes[i] = i;
  const Vec v = load_first(p, n);
  return lanes < splat_int(static_cast<int32_t>(n)) ? v : splat(-kInf);
}

// A NaN may be lost here: the exponentials bring it back.
float greatest(const float* x, int64_t n) {
  Vec most[kUnroll];
  for (int64_t u = 0; u < kUnroll; ++u) most[u] = splat(-kInf);
  int64_t i = 0;
  for (; i + kUnroll * kLanes <= n; i += kUnroll * kLanes) {
#pragma GCC unroll 4
    for (int64_t u = 0; u < kUnroll; ++u) most[u] = max_of(load(x + i + u * kLanes), most[u]);
  }
  for (; i + kLanes <= n; i += kLanes) most[0] = max_of(load(x + i), most[0]);
  if (i < n) most[1] = max_of(load_part(x + i, n - i), most[1]);
  return max_lanes(max_of(max_of(most[0], most[1]), max_of(most[2], most[3])));
}

// The sum of e^(x - max); its terms are stored unless the logarithm is wanted.
template <bool kLog>
double sum_exp(const float* x, int64_t n, float max, float* out) {
  constexpr int64_t kBlock = 4096;  // sums of this many terms are exact enough in float
  double total = 0;
  const auto term = [=](Vec v, int64_t i) {
    const Vec e = exp_nonpositive(v - max);
    if (!kLog) store(out + i, e);
    return e;
  };
  int64_t i = 0;
  while (i + kLanes <= n) {
    const int64_t end = n - i < kBlock ? n : i + kBlock;
    Vec even = {};
    Vec odd = {};
    for (; i + 2 * kLanes <= end; i += 2 * kLanes) {
      even += term(load(x + i), i);
      odd += term(load(x + i + kLanes), i + kLanes);
    }
    for (; i + kLanes <= end; i += kLanes) even += term(load(x + i), i);
    total += static_cast<double>(sum_lanes(even + odd));
  }
  if (i == n) return total;
  const Vec last = exp_nonpositive(load_part(x + i, n - i) - max);
  if (!kLog) store_first(out + i, last, n - i);
  return total + static_cast<double>(sum_lanes(last));
}

void row(const float* x, int64_t n, float* out, bool log) {
  const float max = greatest(x, n);
  if (log) {
    const float total = static_cast<float>(sum_exp<true>(x, n, max, out));
    const float log_sum = vlog(total);
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - max) - log_sum;
    return;
  }
  const float factor = static_cast<float>(1.0 / sum_exp<false>(x, n, max, out));
  for (int64_t i = 0; i < n; ++i) out[i] *= factor;
}

// Softmax of one vector of columns, or of its first `lanes` lanes.
template <bool kWhole>
void column_vector(const float* x, int64_t stride, int64_t rows, int64_t lanes, float* out,
                   bool log) {
  const auto get = [=](const float* p) { return kWhole ? load(p) : load_first(p, lanes); };
  const auto put = [=](float* p, Vec v) {
    if (kWhole) return store(p, v);
    store_first(p, v, lanes);
  };
  Vec max = splat(-kInf);
  for (int64_t i = 0; i < rows; ++i) max = max_of(get(x + i * stride), max);
  Vec sum = {};
  for (int64_t i = 0; i < rows; ++i) {
    const Vec e = exp_nonpositive(get(x + i * stride) - max);
    if (!log) put(out + i * stride, e);
    sum += e;
  }
  if (log) {
    for (int64_t k = 0; k < kLanes; ++k) sum[k] = vlog(sum[k]);
    for (int64_t i = 0; i < rows; ++i) put(out + i * stride, (get(x + i * stride) - max) - sum);
    return;
  }
  const Vec factor = 1.0f / sum;
  for (int64_t i = 0; i < rows; ++i) put(out + i * stride, get(out + i * stride) * factor);
}

void columns(const float* x, int64_t stride, int64_t rows, int64_t columns, float* out, bool log) {
  int64_t j = 0;
  for (; j + kLanes <= columns; j += kLanes) {
    column_vector<true>(x + j, stride, rows, kLanes, out + j, log);
  }
  if (j < columns) column_vector<false>(x + j, stride, rows, columns - j, out + j, log);
}

}  // namespace

const SoftmaxLoops softmax_loops = {row, columns};

}  // namespace rushlight::engine::RL_ISA
