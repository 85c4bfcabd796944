// Softmax and its logarithm, over rows or over columns a block at a time.
#include "rushlight/engine/kernels/rows/rows.h"
#include "rushlight/engine/loops/rows/rows.h"

namespace rushlight::engine {
namespace {

constexpr int64_t kGrain = int64_t{1} << 13;  // elements, some ten operations each

}  // namespace

void softmax(const Softmax& softmax, Workers* workers) {
  if (softmax.width == 0 || softmax.inner == 0) return;
  const SoftmaxLoops& loops = softmax_loops();
  const int64_t blocks = softmax.inner == 1 ? 1 : (softmax.inner + kColumnBlock - 1) / kColumnBlock;
  const int64_t block = softmax.inner < kColumnBlock ? softmax.inner : kColumnBlock;
  const int64_t elements = softmax.width * block;
  const int64_t grain = elements < kGrain ? kGrain / elements : 1;
  share_out(workers, softmax.outer * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t column = item % blocks * kColumnBlock;
      const int64_t at = item / blocks * softmax.width * softmax.inner + column;
      if (softmax.inner == 1) {
        loops.row(softmax.in + at, softmax.width, softmax.out + at, softmax.log);
        continue;
      }
      const int64_t left = softmax.inner - column;
      loops.columns(softmax.in + at, softmax.inner, softmax.width, left < block ? left : block,
                    softmax.out + at, softmax.log);
    }
  });
}

}  // namespace rushlight::engine
