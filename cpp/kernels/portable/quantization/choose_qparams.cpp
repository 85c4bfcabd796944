// Computes scales and zero points from the range of the values of a whole tensor or of each token.
// Results are equal to those of torch's quantized_decomposed library, bit for bit.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/loops/reduction/reduce.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/rows.h"

namespace rushlight::kernels {
namespace {

struct Range {
  float low = INFINITY;
  float high = -INFINITY;
  bool nan = false;

  void add(const float* x, size_t n) {
    extreme(reduce_min(), x, n, &low);
    extreme(reduce_max(), x, n, &high);
  }

 private:
  // Finds the minimum or maximum; a NaN among the elements is the result.
  void extreme(const ReduceLoops& loops, const float* x, size_t n, float* result) {
    double value = static_cast<double>(*result);
    loops.row[kF32](x, n, &value, nullptr);
    nan |= value != value;
    *result = static_cast<float>(value);
  }
};

// Rounds to the nearest value of `dtype`, in which the reference computes.
float rounded(float x, DType dtype) {
  if (dtype == DType::Float32) return x;
  uint16_t half = 0;
  convert(&x, DType::Float32, &half, dtype, 1);
  convert(&half, dtype, &x, DType::Float32, 1);
  return x;
}

// Converts as the processor does: a number that does not fit int32 becomes the lowest int32.
int32_t to_int32(float x) {
  return x >= -2147483648.0F && x < 2147483648.0F ? static_cast<int32_t>(x) : INT32_MIN;
}

Status check_types(KernelContext& ctx, const Tensor& in, const Tensor& scale, const Tensor& zero) {
  if (!is_floating(in.dtype) || in.dtype == DType::Float64) {
    return ctx.fail(Code::NotSupported, "input is %s, but must be float32, float16 or bfloat16",
                    dtype_name(in.dtype));
  }
  RL_TRY(check_dtype(ctx, "scale_out", scale, DType::Float64));
  return check_dtype(ctx, "zero_point_out", zero, DType::Int64);
}

Status range_of(KernelContext& ctx, const Tensor& in, Range* range) {
  float buffer[kChunk];
  const size_t total = static_cast<size_t>(in.numel);
  for (size_t done = 0; done < total; done += kChunk) {
    const size_t n = std::min(kChunk, total - done);
    convert(in.as<const uint8_t>() + done * element_size(in.dtype), in.dtype, buffer,
            DType::Float32, n);
    range->add(buffer, n);
  }
  if (total > 0 && !range->nan) return {};
  return ctx.fail(Code::InvalidArgument, "input %s, so it has no range",
                  total == 0 ? "has no elements" : "holds a NaN");
}

// input, quant_min, quant_max, eps, dtype, scale_out, zero_point_out
Status choose(KernelContext& ctx, EValue* const* args, bool symmetric) {
  const Tensor& in = args[0]->tensor();
  Tensor& scale_out = args[5]->tensor();
  Tensor& zero_out = args[6]->tensor();
  const int64_t low = args[1]->to_int();
  const int64_t high = args[2]->to_int();
  RL_TRY(check_types(ctx, in, scale_out, zero_out));
  if (low >= high || low < INT32_MIN || high > INT32_MAX) {
    return ctx.fail(Code::InvalidArgument,
                    "quant_min is %lld, but must be less than quant_max, %lld",
                    static_cast<long long>(low), static_cast<long long>(high));
  }
  Range range;
  RL_TRY(range_of(ctx, in, &range));
  const int32_t one[] = {1};
  RL_TRY(ctx.resize(scale_out, Span<const int32_t>(one, 1)));
  RL_TRY(ctx.resize(zero_out, Span<const int32_t>(one, 1)));
  const float below = std::min(range.low, 0.0F);
  float above = std::max(range.high, 0.0F);
  float scale = 0;
  const double levels = static_cast<double>(high - low);
  if (symmetric) {
    above = std::max(-below, above);
    scale = rounded(above / static_cast<float>(levels / 2), in.dtype);
  } else {
    scale = rounded(rounded(above - below, in.dtype) / static_cast<float>(levels), in.dtype);
  }
  scale = std::max(scale, static_cast<float>(args[3]->to_double()));
  *scale_out.as<double>() = static_cast<double>(scale);
  int64_t zero = args[4]->to_int() == static_cast<int64_t>(DType::UInt8) ? 128 : 0;
  if (!symmetric) {
    const auto shift = static_cast<uint32_t>(to_int32(std::nearbyint(below / scale)));
    zero = static_cast<int32_t>(static_cast<uint32_t>(low) - shift);  // wraps around in int32
    zero = std::min(std::max(zero, low), high);
  }
  *zero_out.as<int64_t>() = zero;
  return {};
}

struct TokenParams {
  double scale;
  int64_t zero;
};

TokenParams params_of(const Range& range, DType dtype) {
  constexpr float kLow = -128;
  constexpr float kHigh = 127;
  const auto r = [dtype](float x) { return rounded(x, dtype); };
  const float below = std::min(range.low, 0.0F);
  const float above = std::max(range.high, 0.0F);
  const float scale = std::max(r(r(above - below) / 255.0F), r(1.1920928955078125e-07F));
  const float descaled_low = r(below / scale);
  const float descaled_high = r(above / scale);
  const bool from_low = r(r(kLow + descaled_low) + r(kHigh + descaled_high)) > 0;
  const float zero = from_low ? r(kLow - descaled_low) : r(kHigh - descaled_high);
  const float bounded = std::nearbyint(std::min(std::max(zero, kLow), kHigh));
  return {static_cast<double>(scale), static_cast<int64_t>(bounded)};
}

}  // namespace

Status choose_qparams_out(KernelContext& ctx, EValue* const* args) {
  return choose(ctx, args, false);
}

Status choose_qparams_symmetric_out(KernelContext& ctx, EValue* const* args) {
  return choose(ctx, args, true);
}

// choose_qparams_per_token_asymmetric(input, dtype, *, scale_out, zero_point_out)
Status choose_qparams_per_token_asymmetric_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& scale_out = args[2]->tensor();
  Tensor& zero_out = args[3]->tensor();
  RL_TRY(check_types(ctx, in, scale_out, zero_out));
  if (in.rank == 0 || in.sizes[in.rank - 1] == 0 || !in.is_contiguous()) {
    return ctx.fail(Code::InvalidArgument,
                    "input has shape %s; tokens are its last dimension, which must lie in a row "
                    "and have elements",
                    ShapeText(in.shape()).text());
  }
  Shape shape(in.shape());
  shape.sizes[shape.rank - 1] = 1;
  RL_TRY(ctx.resize(scale_out, shape.span()));
  RL_TRY(ctx.resize(zero_out, shape.span()));
  const int64_t size = in.sizes[in.rank - 1];
  const int64_t tokens = in.numel / size;
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / size);
  std::atomic<bool> nan{false};
  ctx.parallel(tokens, grain, [&](int64_t begin, int64_t end) {
    RowReader reader(in, DType::Float32);
    const int64_t most = static_cast<int64_t>(std::min<size_t>(reader.limit(1), 1 << 20));
    for (int64_t token = begin; token < end; ++token) {
      Range range;
      for (int64_t k = 0; k < size; k += most) {
        const auto n = static_cast<size_t>(std::min(most, size - k));
        range.add(static_cast<const float*>(reader.read(token * size + k, 1, n)), n);
      }
      if (range.nan) nan = true;
      const TokenParams params = params_of(range, in.dtype);
      scale_out.as<double>()[token] = params.scale;
      zero_out.as<int64_t>()[token] = params.zero;
    }
  });
  if (!nan) return {};
  return ctx.fail(Code::InvalidArgument, "input holds a NaN, so it has no range");
}

}  // namespace rushlight::kernels
