#include "rushlight/engine/kernels/rows/quantized.h"

#include <cmath>

#include "rushlight/engine/loops/rows/bytes.h"

namespace rushlight::engine {
namespace {

constexpr int64_t kGrainBytes = int64_t{1} << 14;

// Dimensions in the order of the result's memory, with dense neighbours merged.
struct Space {
  size_t rank = 0;
  int64_t sizes[kMaxViewRank + 1] = {};
  int64_t a[kMaxViewRank + 1] = {}, b[kMaxViewRank + 1] = {}, out[kMaxViewRank + 1] = {};

  explicit Space(const ByteOperands& operands) {
    for (size_t d = 0; d < operands.rank; ++d) {
      if (operands.sizes[d] == 1) continue;
      size_t at = rank++;
      for (; at > 0 && out[at - 1] < operands.out_strides[d]; --at) move(at - 1, at);
      sizes[at] = operands.sizes[d];
      a[at] = operands.a_strides[d];
      b[at] = operands.b_strides[d];
      out[at] = operands.out_strides[d];
    }
    join();
  }

 private:
  void move(size_t from, size_t to) {
    sizes[to] = sizes[from];
    a[to] = a[from];
    b[to] = b[from];
    out[to] = out[from];
  }
  void join() {
    size_t kept = 0;
    for (size_t d = 0; d < rank; ++d) {
      const int64_t size = sizes[d];
      const bool behind = kept > 0 && a[kept - 1] == a[d] * size && b[kept - 1] == b[d] * size &&
                          out[kept - 1] == out[d] * size;
      if (!behind) {
        move(d, kept++);
        continue;
      }
      const int64_t joined = sizes[kept - 1] * size;
      move(d, kept - 1);
      sizes[kept - 1] = joined;
    }
    rank = kept;
    if (rank == 0) sizes[rank++] = 1;  // a single element
  }
};

// Calls row(…) for rows of at most kGrainBytes.
template <typename Row>
void for_each_row(const ByteOperands& operands, Workers* workers, Row&& row) {
  for (size_t d = 0; d < operands.rank; ++d) {
    if (operands.sizes[d] <= 0) return;
  }
  const Space space(operands);
  const size_t last = space.rank - 1;
  const int64_t count = space.sizes[last];
  const int64_t piece = count < kGrainBytes ? count : kGrainBytes;
  const int64_t pieces = (count + piece - 1) / piece;
  int64_t rows = 1;
  for (size_t d = 0; d < last; ++d) rows *= space.sizes[d];
  share_out(workers, rows * pieces, kGrainBytes / piece, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t first = item % pieces * piece;
      int64_t a = first * space.a[last];
      int64_t b = first * space.b[last];
      int64_t out = first * space.out[last];
      int64_t rest = item / pieces;
      for (size_t d = last; d-- > 0; rest /= space.sizes[d]) {
        a += rest % space.sizes[d] * space.a[d];
        b += rest % space.sizes[d] * space.b[d];
        out += rest % space.sizes[d] * space.out[d];
      }
      row(ByteRow{operands.a + a, operands.b + b, operands.out + out, space.a[last], space.b[last],
                  space.out[last], count - first < piece ? count - first : piece});
    }
  });
}

}  // namespace

bool set_sum(float a_scale, float b_scale, float scale, QuantizedBinary* binary) {
  constexpr int kMultiplierBits = 20;
  const float a_ratio = a_scale / scale;
  const float b_ratio = b_scale / scale;
  const float greatest = a_ratio > b_ratio ? a_ratio : b_ratio;
  if (!(a_ratio >= 0 && b_ratio >= 0 && greatest >= 0x1p-10f && greatest < 0x1p8f)) return false;
  const int shift = kMultiplierBits - std::ilogb(greatest);
  binary->shift = shift;
  binary->a_multiplier = static_cast<int32_t>(std::lrintf(std::ldexp(a_ratio, shift)));
  binary->b_multiplier = static_cast<int32_t>(std::lrintf(std::ldexp(b_ratio, shift)));
  if (binary->kind == QuantizedBinaryKind::Subtract) binary->b_multiplier = -binary->b_multiplier;
  binary->bias = (int32_t{1} << (shift - 1)) - binary->a_multiplier * binary->a_zero_point -
                 binary->b_multiplier * binary->b_zero_point;
  return true;
}

void combine(const QuantizedBinary& binary, const ByteOperands& operands, Workers* workers) {
  for_each_row(operands, workers, [&](const ByteRow& row) { byte_loops().combine(binary, row); });
}

void look_up(const ByteOperands& operands, Workers* workers) {
  for_each_row(operands, workers, [](const ByteRow& row) { byte_loops().look_up(row); });
}

}  // namespace rushlight::engine
