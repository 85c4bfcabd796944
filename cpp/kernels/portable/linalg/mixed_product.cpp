// Products of floating activations and an int8 matrix that is dequantized one block at a time, and
// the sum of two quantized tensors.
#include <algorithm>
#include <cmath>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/element.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/linalg/gemm.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {
namespace {

// out [m, n] = input [m, k] times W. Element (k, n) of W is (weight - zero point) * scale.
struct MixedProduct {
  const Tensor& input;
  const Tensor& weight;
  const Tensor& scales;  // for weight's rows, or for groups of their elements
  const Tensor* zeros;   // like scales, or nullptr
  const Tensor& out;
  bool transposed;  // weight is [n, k]

  int64_t m() const { return input.sizes[0]; }
  int64_t k() const { return input.sizes[1]; }
  int64_t n() const { return weight.sizes[transposed ? 0 : 1]; }
  int64_t groups() const { return scales.rank == 2 ? scales.sizes[1] : 1; }
};

// The sizes of a block.
struct Blocks {
  int64_t m;
  int64_t n;
  int64_t k;

  int64_t floats() const { return m * k + k * n + m * n; }
};
constexpr Blocks kLarge = {64, 128, 256};
constexpr Blocks kSmall = {8, 8, 64};
constexpr int64_t kPanels = 8192;  // floats for the product's panels, in addition to a large block

// Dequantizes elements first..first + n - 1 of a row of weight.
void dequantize(const MixedProduct& p, int64_t row, int64_t first, int64_t n, float* to) {
  const int64_t width = p.weight.sizes[1];
  const int64_t group = (width + p.groups() - 1) / p.groups();
  const int8_t* from = p.weight.as<const int8_t>() + row * width;
  for (int64_t i = first; i < first + n;) {
    const int64_t place = row * p.groups() + i / group;
    const float scale = float_at(p.scales, place);
    const float zero = p.zeros == nullptr ? 0.0F : float_at(*p.zeros, place);
    const int64_t end = std::min(first + n, (i / group + 1) * group);
    for (; i < end; ++i) *to++ = (static_cast<float>(from[i]) - zero) * scale;
  }
}

// Computes columns first..first + n - 1 of out, one block after the other.
void columns(const MixedProduct& p, const Blocks& blocks, const Workspace& memory, int64_t first,
             int64_t n) {
  float* x = memory.data();
  float* w = x + blocks.m * blocks.k;
  float* sums = w + blocks.k * blocks.n;
  const int64_t own = (blocks.floats() + 15) / 16 * 16;
  const Workspace work(memory.context(), memory.data() + own, memory.size() - own);
  for (int64_t i = 0; i < p.m(); i += blocks.m) {
    const int64_t rows = std::min(blocks.m, p.m() - i);
    std::fill(sums, sums + rows * n, 0.0F);
    for (int64_t j = 0; j < p.k(); j += blocks.k) {
      const int64_t depth = std::min(blocks.k, p.k() - j);
      CopyBlock part;
      part.push(rows, p.k(), depth);
      part.push(depth, 1, 1);
      converting_copy(element_at(p.input, i * p.k() + j), p.input.dtype, x, DType::Float32, part);
      for (int64_t r = 0; r < (p.transposed ? n : depth); ++r) {
        if (p.transposed) {
          dequantize(p, first + r, j, depth, w + r * depth);
        } else {
          dequantize(p, j + r, first, n, w + r * n);
        }
      }
      Product product;
      product.m = rows;
      product.n = n;
      product.k = depth;
      product.a = {x, depth, 1, nullptr, nullptr};
      product.b = {w, p.transposed ? depth : 1, p.transposed ? 1 : n, nullptr, nullptr};
      product.c = sums;
      product.c_row = n;
      product.add = sums;
      product.add_row = n;
      product.add_col = 1;
      multiply(work, product);
    }
    CopyBlock part;
    part.push(rows, n, p.n());
    part.push(n, 1, 1);
    converting_copy(sums, DType::Float32, element_at(p.out, i * p.n() + first), p.out.dtype, part);
  }
}

// Sums are float, so wider types are refused.
Status check_type(KernelContext& ctx, const char* name, const Tensor& tensor) {
  if (is_floating(tensor.dtype) && tensor.dtype != DType::Float64) return {};
  return ctx.fail(Code::NotSupported, "%s is %s, but must be float32, float16 or bfloat16", name,
                  dtype_name(tensor.dtype));
}

Status check_parameters(KernelContext& ctx, const char* name, const Tensor& tensor,
                        const MixedProduct& p) {
  RL_TRY(check_type(ctx, name, tensor));
  bool fits = (tensor.rank == 1 || (tensor.rank == 2 && p.transposed)) && tensor.is_contiguous() &&
              tensor.rank == p.scales.rank && tensor.sizes[0] == p.weight.sizes[0];
  if (fits && tensor.rank == 2) {
    const int64_t groups = tensor.sizes[1];
    const int64_t group = groups > 0 ? (p.k() + groups - 1) / groups : 0;
    fits = groups == p.groups() && group > 0 && (p.k() + group - 1) / group <= groups;
  }
  if (fits) return {};
  return ctx.fail(Code::InvalidArgument,
                  "%s has shape %s, but must have one element for each row of weight, whose shape "
                  "is %s%s",
                  name, ShapeText(tensor.shape()).text(), ShapeText(p.weight.shape()).text(),
                  p.transposed ? ", or for each group of a row's elements" : "");
}

Status run(KernelContext& ctx, const MixedProduct& p, Tensor& out) {
  RL_TRY(check_rank(ctx, "input", p.input, 2));
  RL_TRY(check_rank(ctx, "weight", p.weight, 2));
  RL_TRY(check_type(ctx, "input", p.input));
  RL_TRY(check_dtype(ctx, "weight", p.weight, DType::Int8));
  RL_TRY(check_type(ctx, "out", out));
  if (p.weight.sizes[p.transposed ? 1 : 0] != p.k() || !p.input.is_contiguous() ||
      !p.weight.is_contiguous()) {
    return ctx.fail(Code::InvalidArgument,
                    "input has shape %s and weight %s, which do not fit, or are not in row-major "
                    "order",
                    ShapeText(p.input.shape()).text(), ShapeText(p.weight.shape()).text());
  }
  RL_TRY(check_parameters(ctx, "weight_scales", p.scales, p));
  if (p.zeros != nullptr) RL_TRY(check_parameters(ctx, "weight_zero_points", *p.zeros, p));
  const int32_t shape[] = {static_cast<int32_t>(p.m()), static_cast<int32_t>(p.n())};
  RL_TRY(ctx.resize(out, {shape, 2}));
  if (out.numel == 0) return {};
  if (!out.is_contiguous()) {
    return ctx.fail(Code::NotSupported, "out does not lie in row-major order");
  }
  const Workspace memory(ctx);
  const int shares_count = memory.size() / 4 >= kLarge.floats() + kPanels ? 4 : 1;
  const bool large = memory.size() / shares_count >= kLarge.floats() + kPanels;
  alignas(64) float stack[4096];
  const bool little = memory.size() < 4096;
  const Workspace least(ctx, little ? stack : memory.data(), little ? 4096 : memory.size());
  const Blocks blocks = large ? kLarge : kSmall;
  Shares shares(shares_count);
  ctx.parallel(p.n(), blocks.n, [&](int64_t begin, int64_t end) {
    const int share = shares.take();
    columns(p, blocks, large ? Workspace(memory, share, shares_count) : least, begin, end - begin);
    shares.give(share);
  });
  return {};
}

// The scale, zero point and range of a quantized tensor.
struct Scale {
  float scale;
  int64_t zero;
  int64_t low;
  int64_t high;
};

Status read_scale(KernelContext& ctx, EValue* const* args, const char* name, Scale* scale) {
  *scale = {static_cast<float>(args[0]->to_double()), args[1]->to_int(), args[2]->to_int(),
            args[3]->to_int()};
  const bool zero_fits = scale->zero >= INT32_MIN && scale->zero <= INT32_MAX;
  if (zero_fits && scale->low >= 0 && scale->low <= scale->high && scale->high <= 255) return {};
  return ctx.fail(
      Code::InvalidArgument,
      "%s_quant_min is %lld and %s_quant_max %lld, which must be a range in 0..255, and "
      "%s_zero_point %lld, which must fit int32",
      name, static_cast<long long>(scale->low), name, static_cast<long long>(scale->high), name,
      static_cast<long long>(scale->zero));
}

void add_chunk(const Tensor* const* tensors, const Scale* scales, int64_t first, size_t n) {
  int64_t a[kChunk];
  int64_t b[kChunk];
  const DType dtype = tensors[0]->dtype;
  convert(element_at(*tensors[0], first), dtype, a, DType::Int64, n);
  convert(element_at(*tensors[1], first), dtype, b, DType::Int64, n);
  const float inverse = 1.0F / scales[2].scale;
  const float low = static_cast<float>(scales[2].low);
  const float high = static_cast<float>(scales[2].high);
  for (size_t i = 0; i < n; ++i) {
    // Unsigned, so that the difference of extreme numbers wraps around.
    const uint64_t x = static_cast<uint64_t>(a[i]) - static_cast<uint64_t>(scales[0].zero);
    const uint64_t y = static_cast<uint64_t>(b[i]) - static_cast<uint64_t>(scales[1].zero);
    const float sum = static_cast<float>(static_cast<int64_t>(x)) * scales[0].scale +
                      static_cast<float>(static_cast<int64_t>(y)) * scales[1].scale;
    const float q = static_cast<float>(scales[2].zero) + std::nearbyint(inverse * sum);
    a[i] = static_cast<int64_t>(q > low ? (q < high ? q : high) : low);
  }
  convert(a, DType::Int64, element_at(*tensors[2], first), dtype, n);
}

}  // namespace

// add(a, a_scale, a_zero_point, a_quant_min, a_quant_max, b, b_scale, ..., out_scale, ..., *, out):
// dequantizes both, adds them and quantizes the sum.
Status quantized_add_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& a = args[0]->tensor();
  const Tensor& b = args[5]->tensor();
  Tensor& out = args[14]->tensor();
  Scale scales[3];
  RL_TRY(read_scale(ctx, args + 1, "a", &scales[0]));
  RL_TRY(read_scale(ctx, args + 6, "b", &scales[1]));
  RL_TRY(read_scale(ctx, args + 10, "out", &scales[2]));
  RL_TRY(check_same_type(ctx, "a", a, out));
  RL_TRY(check_same_type(ctx, "b", b, out));
  if (is_floating(a.dtype) || a.dtype == DType::Bool || !is_real(a.dtype)) {
    return ctx.fail(Code::NotSupported, "a is %s, but must be of integers up to 64 bits",
                    dtype_name(a.dtype));
  }
  if (a.rank != b.rank || !same_layout(a, b)) {
    return ctx.fail(Code::InvalidArgument,
                    "a has shape %s and b %s; they must have the same, in one order of dimensions",
                    ShapeText(a.shape()).text(), ShapeText(b.shape()).text());
  }
  RL_TRY(ctx.resize_like(out, a));
  if (out.numel > 0 && !same_layout(a, out)) {
    return ctx.fail(Code::NotSupported, "out has not the order of dimensions of a and b");
  }
  const Tensor* const tensors[] = {&a, &b, &out};
  ctx.parallel(out.numel, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += static_cast<int64_t>(kChunk)) {
      add_chunk(tensors, scales, i,
                static_cast<size_t>(std::min(static_cast<int64_t>(kChunk), end - i)));
    }
  });
  return {};
}

// mixed_mm(input, weight, weight_scales, weight_zero_points, *, out): weight is [k, n], with one
// scale for each k.
Status mixed_mm_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[4]->tensor();
  RL_TRY(check_same_type(ctx, "input", args[0]->tensor(), out));
  return run(ctx,
             {args[0]->tensor(), args[1]->tensor(), args[2]->tensor(), args[3]->tensor_or_null(),
              out, false},
             out);
}

// mixed_linear(input, weight, weight_scales, weight_zero_points, dtype, *, out): weight is [n, k],
// with one scale for each n.
Status mixed_linear_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[5]->tensor();
  if (!args[4]->is_none() && args[4]->to_int() != static_cast<int64_t>(out.dtype)) {
    return ctx.fail(Code::InvalidArgument, "dtype is %lld, but out is %s",
                    static_cast<long long>(args[4]->to_int()), dtype_name(out.dtype));
  }
  return run(ctx,
             {args[0]->tensor(), args[1]->tensor(), args[2]->tensor(), args[3]->tensor_or_null(),
              out, true},
             out);
}

}  // namespace rushlight::kernels
