#include "rushlight/engine/kernels/rows/quantize.h"

#include "rushlight/engine/kernels/products/blocks.h"
#include "rushlight/engine/loops/products/quantize.h"
#include "rushlight/engine/types/dot_product.h"

namespace rushlight::engine {
namespace {

// Rows are divided into pieces, so that a single long one is shared out, too.
constexpr int64_t kPiece = 4096;
constexpr int64_t kMaxRows = 4;      // that are quantised together
constexpr int64_t kElementWork = 8;  // the work of an element, in multiplications

template <typename Body>
void each_piece(int64_t width, int64_t begin, int64_t end, Body body) {
  const int64_t pieces = (width + kPiece - 1) / kPiece;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t column = i % pieces * kPiece;
    body(i / pieces, column, width - column < kPiece ? width - column : kPiece);
  }
}

void convert_pieces(void* data, int64_t begin, int64_t end) {
  const Convert& job = *static_cast<const Convert*>(data);
  const QuantizeLoops& loops = quantize_loops();
  each_piece(job.width, begin, end, [&](int64_t row, int64_t column, int64_t n) {
    const int64_t in = row * job.in_stride + column;
    const int64_t out = row * job.out_stride + column;
    const auto* bytes = static_cast<const uint8_t*>(job.in) + in;
    auto* out_bytes = static_cast<uint8_t*>(job.out) + out;
    switch (job.kind) {
      case ByteConversion::ToBytes:
        return loops.to_bytes(static_cast<const float*>(job.in) + in, n, 1.0f / job.scale,
                              job.zero_point, out_bytes);
      case ByteConversion::ToFloats:
        return loops.to_floats(bytes, n, job.scale, job.zero_point,
                               static_cast<float*>(job.out) + out);
      case ByteConversion::Flip:
        return loops.flip(bytes, n, out_bytes);
    }
  });
}

// Scale and zero point of numbers from `low` to `high`, finite and zero among them, as XNNPACK
// computes them for signed integers.
void choose_scale(float low, float high, float* inverse, int32_t* zero_point) {
  *inverse = 255.0f / (high - low);
  if (high - low > 3e38f) *inverse = 127.5f / (0.5f * high - 0.5f * low);  // it may be infinite
  if (!(*inverse <= 3e38f)) *inverse = 1;                                  // all elements are 0
  const float from_low = -128.0f - low * *inverse;
  const float from_high = 127.0f - high * *inverse;
  const bool low_is_closer = (-128.0f + low * *inverse) + (127.0f + high * *inverse) > 0;
  float zero = low_is_closer ? from_low : from_high;
  zero = zero < -128.0f ? -128.0f : zero;
  zero = zero > 127.0f ? 127.0f : zero;
  // Rounds to the nearest integer, ties to even, by adding a number whose last bit is worth 1.
  *zero_point = static_cast<int32_t>((zero + 12582912.0f) - 12582912.0f) + 128;
}

struct RowScale {
  float low, high;
  float inverse = 0;
  int32_t zero_point = 128;
  bool finite;
};

// A few short rows at a time: their scales, each of a long chain of operations, are computed side
// by side.
void quantize_some_rows(void* data, int64_t begin, int64_t end) {
  const QuantizeRows& job = *static_cast<const QuantizeRows*>(data);
  const QuantizeLoops& loops = quantize_loops();
  const int64_t at_once = job.width * kMaxRows > kPiece ? 1 : kMaxRows;
  for (int64_t first = begin; first < end; first += at_once) {
    const int64_t last = least(first + at_once, end);
    RowScale scales[kMaxRows];
    for (int64_t row = first; row < last; ++row) {
      RowScale& s = scales[row - first];
      s.finite = loops.extremes(job.in + row * job.in_stride, job.width, &s.low, &s.high);
    }
    for (int64_t row = first; row < last; ++row) {
      RowScale& s = scales[row - first];
      if (s.finite) choose_scale(s.low, s.high, &s.inverse, &s.zero_point);
      job.scales[2 * row] = s.finite ? 1.0f / s.inverse : __builtin_nanf("");
      job.scales[2 * row + 1] = static_cast<float>(s.zero_point);
    }
    for (int64_t row = first; row < last; ++row) {
      const RowScale& s = scales[row - first];
      loops.to_bytes(job.in + row * job.in_stride, job.width, s.inverse, s.zero_point,
                     job.out + row * job.out_stride);
    }
  }
}

// A row is shared out in pieces, so that threads take parts of a single long one, too.
void quantize_some_groups(void* data, int64_t begin, int64_t end) {
  const QuantizeGroups& job = *static_cast<const QuantizeGroups*>(data);
  const int64_t groups = job.width / job.group_size;
  each_piece(job.width, begin, end, [&](int64_t row, int64_t column, int64_t n) {
    const int64_t at = row * groups + column / job.group_size;
    quantize_loops().to_groups(job.in + row * job.in_stride + column, n / job.group_size,
                               job.group_size, job.out + row * job.out_stride + column,
                               job.scales + at, job.sums + at);
  });
}

}  // namespace

void quantize_groups(const QuantizeGroups& job, Workers* workers) {
  static_assert(kPiece % kMaxRowGroup == 0, "pieces hold whole groups");
  const int64_t pieces = (job.width + kPiece - 1) / kPiece;
  share_out(job.rows * pieces, work_of({job.rows, job.width, kElementWork}), quantize_some_groups,
            const_cast<QuantizeGroups*>(&job), workers);
}

void quantize_rows(const QuantizeRows& job, Workers* workers) {
  share_out(job.rows, work_of({job.rows, job.width, kElementWork}), quantize_some_rows,
            const_cast<QuantizeRows*>(&job), workers);
}

void convert(const Convert& job, Workers* workers) {
  const int64_t pieces = (job.width + kPiece - 1) / kPiece;
  share_out(job.rows * pieces, work_of({job.rows, job.width, kElementWork}), convert_pieces,
            const_cast<Convert*>(&job), workers);
}

}  // namespace rushlight::engine
