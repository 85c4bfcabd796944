// Sums, means, greatest and least elements, over rows or over columns a block at a time.
#include "rushlight/backends/cpu/kernels/rows.h"
#include "rushlight/backends/cpu/loops/rows.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kGrain = int64_t{1} << 15;  // elements

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
        continue;
      }
      const int64_t left = reduce.inner - column;
      loops.columns(x, reduce.inner, reduce.width, left < block ? left : block, reduce.kind, out);
    }
  });
}

}  // namespace rushlight::cpu
