// Sums, means, maxima and minima, over rows or over columns a block at a time. The loops add
// floats; where a sum overflows although the result would not, it is computed again in double.
#include <cmath>

#include "rushlight/engine/kernels/rows/moments.h"
#include "rushlight/engine/kernels/rows/rows.h"
#include "rushlight/engine/loops/rows/rows.h"

namespace rushlight::engine {
namespace {

constexpr int64_t kGrain = int64_t{1} << 15;  // elements

// Computes the results that are not finite again, for `columns` columns or one row.
void mend(const Reduce& reduce, const float* x, int64_t columns, float* out) {
  if (reduce.kind != Reduction::Sum && reduce.kind != Reduction::Mean) return;
  const double divisor = reduce.kind == Reduction::Mean ? static_cast<double>(reduce.width) : 1.0;
  for (int64_t k = 0; k < columns; ++k) {
    if (std::isfinite(out[k])) continue;
    const double sum = exact_sum(x + k, reduce.width, reduce.inner);
    out[k] = static_cast<float>(sum / divisor);
  }
}

}  // namespace

void reduce(const Reduce& reduce, Workers* workers) {
  if (reduce.inner == 0) return;
  const ReduceLoops& loops = reduce_loops();
  const int64_t blocks = reduce.inner == 1 ? 1 : (reduce.inner + kColumnBlock - 1) / kColumnBlock;
  const int64_t block = reduce.inner < kColumnBlock ? reduce.inner : kColumnBlock;
  const int64_t elements = reduce.width > 0 ? reduce.width * block : block;
  const int64_t grain = elements < kGrain ? kGrain / elements : 1;
  share_out(workers, reduce.outer * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t column = item % blocks * kColumnBlock;
      const int64_t outer = item / blocks;
      const float* const x = reduce.in + outer * reduce.width * reduce.inner + column;
      float* const out = reduce.out + outer * reduce.inner + column;
      if (reduce.inner == 1) {
        *out = loops.row(x, reduce.width, reduce.kind);
        mend(reduce, x, 1, out);
        continue;
      }
      const int64_t left = reduce.inner - column;
      const int64_t columns = left < block ? left : block;
      loops.columns(x, reduce.inner, reduce.width, columns, reduce.kind, out);
      mend(reduce, x, columns, out);
    }
  });
}

}  // namespace rushlight::engine
