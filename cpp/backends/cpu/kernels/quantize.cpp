#include "rushlight/backends/cpu/kernels/quantize.h"

#include "rushlight/backends/cpu/kernels/blocks.h"
#include "rushlight/backends/cpu/loops/quantize.h"

namespace rushlight::cpu {
namespace {

// Rows are cut into pieces, so that a single long one is shared out, too.
constexpr int64_t kPiece = 4096;

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
    const int64_t in = row * job.in_step + column;
    const int64_t out = row * job.out_step + column;
    const auto* bytes = static_cast<const uint8_t*>(job.in) + in;
    auto* out_bytes = static_cast<uint8_t*>(job.out) + out;
    switch (job.kind) {
      case Conversion::ToBytes:
        return loops.to_bytes(static_cast<const float*>(job.in) + in, n, 1.0f / job.scale,
                              job.zero_point, out_bytes);
      case Conversion::ToFloats:
        return loops.to_floats(bytes, n, job.scale, job.zero_point,
                               static_cast<float*>(job.out) + out);
      case Conversion::Flip:
        return loops.flip(bytes, n, out_bytes);
    }
  });
}

// Scale and zero point of numbers from `least` to `greatest`, finite, as XNNPACK has them: there
// integers are signed.
void choose_scale(float least, float greatest, float* inverse, int32_t* zero_point) {
  const float low = least < 0 ? least : 0;
  const float high = greatest > 0 ? greatest : 0;
  *inverse = 255.0f / (high - low);
  if (high - low > 3e38f) *inverse = 127.5f / (0.5f * high - 0.5f * low);  // it may be infinite
  if (!(*inverse <= 3e38f)) *inverse = 1;                                  // of zeros
  const float from_low = -128.0f - low * *inverse;
  const float from_high = 127.0f - high * *inverse;
  const bool low_is_closer = (-128.0f + low * *inverse) + (127.0f + high * *inverse) > 0;
  float zero = low_is_closer ? from_low : from_high;
  zero = zero < -128.0f ? -128.0f : zero;
  zero = zero > 127.0f ? 127.0f : zero;
  *zero_point = static_cast<int32_t>(__builtin_rintf(zero)) + 128;
}

void quantize_some_rows(void* data, int64_t begin, int64_t end) {
  const QuantizeRows& job = *static_cast<const QuantizeRows*>(data);
  const QuantizeLoops& loops = quantize_loops();
  for (int64_t row = begin; row < end; ++row) {
    const float* in = job.in + row * job.in_step;
    float least, greatest;
    float inverse = 0;
    int32_t zero_point = 128;
    const bool finite = loops.extremes(in, job.width, &least, &greatest);
    if (finite) choose_scale(least, greatest, &inverse, &zero_point);
    job.scales[2 * row] = finite ? 1.0f / inverse : __builtin_nanf("");
    job.scales[2 * row + 1] = static_cast<float>(zero_point);
    loops.to_bytes(in, job.width, inverse, zero_point, job.out + row * job.out_step);
  }
}

}  // namespace

void quantize_rows(const QuantizeRows& job, Workers* workers) {
  share_out(job.rows, work_of({job.rows, job.width}), quantize_some_rows,
            const_cast<QuantizeRows*>(&job), workers);
}

void convert(const Convert& job, Workers* workers) {
  const int64_t pieces = (job.width + kPiece - 1) / kPiece;
  share_out(job.rows * pieces, work_of({job.rows, job.width}), convert_pieces,
            const_cast<Convert*>(&job), workers);
}

}  // namespace rushlight::cpu
