// Quantization and dequantization, with one scale for a whole tensor, or one for each channel,
// group of elements or token.
//
// Results are equal to those of the functional operators of torch's quantized_decomposed library,
// bit for bit. If scales are float64, so is the arithmetic. With channels, the result is rounded
// before the zero point is added; with tokens and groups, after it is added.
#include "rushlight/kernels/portable/loops/quantization/quantize.h"

#include <algorithm>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/elementwise/elementwise.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {
namespace {

struct Bounds {
  int64_t low;
  int64_t high;
};

// Sets the range of a quantized type; false if the type is not one.
bool bounds_of(DType dtype, Bounds* bounds) {
  switch (dtype) {
    case DType::UInt8:
      *bounds = {0, UINT8_MAX};
      return true;
    case DType::Int8:
      *bounds = {INT8_MIN, INT8_MAX};
      return true;
    case DType::UInt16:
      *bounds = {0, UINT16_MAX};
      return true;
    case DType::Int16:
      *bounds = {INT16_MIN, INT16_MAX};
      return true;
    case DType::Int32:
      *bounds = {INT32_MIN, INT32_MAX};
      return true;
    default:
      return false;
  }
}

Status check_quantized(KernelContext& ctx, const char* name, const Tensor& tensor, int64_t dtype) {
  Bounds unused;
  if (!bounds_of(tensor.dtype, &unused)) {
    return ctx.fail(Code::NotSupported,
                    "%s is %s; quantized types are uint8, int8, uint16, int16 and int32", name,
                    dtype_name(tensor.dtype));
  }
  if (dtype == static_cast<int64_t>(tensor.dtype)) return {};
  return ctx.fail(Code::InvalidArgument, "dtype is %lld, but %s is %s",
                  static_cast<long long>(dtype), name, dtype_name(tensor.dtype));
}

Status check_input(KernelContext& ctx, const Tensor& in) {
  if (is_floating(in.dtype) && in.dtype != DType::Float64) return {};
  return ctx.fail(Code::NotSupported, "input is %s, but must be float32, float16 or bfloat16",
                  dtype_name(in.dtype));
}

Status check_bounds(KernelContext& ctx, int64_t low, int64_t high, const Tensor& out,
                    LoopArgs* args) {
  Bounds allowed;
  if (bounds_of(out.dtype, &allowed) && low >= allowed.low && high <= allowed.high && low <= high) {
    args->i[1] = low;
    args->i[2] = high;
    return {};
  }
  return ctx.fail(Code::InvalidArgument,
                  "quant_min is %lld and quant_max %lld, which is not a range of %s",
                  static_cast<long long>(low), static_cast<long long>(high), dtype_name(out.dtype));
}

// Reads the only element of a tensor, or a scalar argument.
Status read_number(KernelContext& ctx, const char* name, const EValue& value, double* real,
                   int64_t* whole) {
  if (!value.is_tensor()) {
    *real = value.to_double();
    *whole = value.to_int();
    return {};
  }
  const Tensor& tensor = value.tensor();
  RL_TRY(check_real(ctx, name, tensor));
  if (tensor.numel != 1) {
    return ctx.fail(Code::InvalidArgument, "%s has shape %s, but must have one element", name,
                    ShapeText(tensor.shape()).text());
  }
  convert(tensor.data, tensor.dtype, real, DType::Float64, 1);
  convert(tensor.data, tensor.dtype, whole, DType::Int64, 1);
  return {};
}

struct ScalarParams {
  double scale = 1;
  int64_t zero = 0;
  int64_t low = 0;
  int64_t high = 0;
};

Status read_params(KernelContext& ctx, EValue* const* args, ScalarParams* params) {
  double unused = 0;
  int64_t whole = 0;
  RL_TRY(read_number(ctx, "scale", *args[1], &params->scale, &whole));
  RL_TRY(read_number(ctx, "zero_point", *args[2], &unused, &params->zero));
  RL_TRY(read_number(ctx, "quant_min", *args[3], &unused, &params->low));
  return read_number(ctx, "quant_max", *args[4], &unused, &params->high);
}

// A tensor in another shape, which has one number for each channel, token or group of the elements.
struct Params {
  Tensor tensor;
  int32_t sizes[kMaxRank];
  int32_t strides[kMaxRank];
  uint8_t order[kMaxRank];

  // Gives the elements of `from`, which must be dense, another shape.
  void along(const Tensor& from, size_t rank, const int32_t* shape) {
    tensor = from;
    tensor.rank = static_cast<uint8_t>(rank);
    tensor.sizes = sizes;
    tensor.strides = strides;
    tensor.dim_order = order;
    int32_t stride = 1;
    for (size_t d = rank; d-- > 0;) {
      sizes[d] = shape[d];
      strides[d] = stride;
      order[d] = static_cast<uint8_t>(d);
      stride *= shape[d] > 0 ? shape[d] : 1;
    }
  }
};

Status check_params(KernelContext& ctx, const char* name, const Tensor& tensor, int64_t count,
                    bool only_real) {
  const bool real = tensor.dtype == DType::Float32 || tensor.dtype == DType::Float64;
  const bool whole = tensor.dtype == DType::Int32 || tensor.dtype == DType::Int64;
  if (!real && (only_real || !whole)) {
    return ctx.fail(Code::NotSupported, "%s is %s, but must be float32%s float64%s", name,
                    dtype_name(tensor.dtype), only_real ? " or" : ",",
                    only_real ? "" : ", int32 or int64");
  }
  if (tensor.numel == count && tensor.is_contiguous()) return {};
  return ctx.fail(Code::InvalidArgument, "%s has shape %s, but must have %lld elements in a row",
                  name, ShapeText(tensor.shape()).text(), static_cast<long long>(count));
}

// The shapes of the elements and of their quantization parameters.
struct Layout {
  Shape elements;
  int32_t params[kMaxRank];
  int64_t count = 1;  // number of parameters
};

Layout by_axis(const Tensor& in, size_t axis) {
  Layout layout;
  layout.elements = Shape(in.shape());
  for (size_t d = 0; d < in.rank; ++d) layout.params[d] = d == axis ? in.sizes[d] : 1;
  layout.count = in.sizes[axis];
  return layout;
}

Layout by_row(const Tensor& in) {
  Layout layout;
  layout.elements = Shape(in.shape());
  for (size_t d = 0; d < in.rank; ++d) {
    layout.params[d] = d + 1 == in.rank ? 1 : in.sizes[d];
    layout.count *= layout.params[d];
  }
  return layout;
}

Status by_group(KernelContext& ctx, const Tensor& in, const Tensor& scales, int64_t group,
                Layout* layout) {
  RL_TRY(check_rank(ctx, "input", in, 2));
  const int64_t row = in.sizes[1];
  if (group > row && scales.rank > 0 && scales.sizes[scales.rank - 1] == 1) group = row;
  if (group <= 1 || row % group != 0 || !in.is_contiguous()) {
    return ctx.fail(Code::InvalidArgument,
                    "group_size is %lld; it must be at least 2 and divide the rows of input, whose "
                    "shape is %s",
                    static_cast<long long>(group), ShapeText(in.shape()).text());
  }
  const int64_t sizes[] = {in.sizes[0], row / group, group};
  for (size_t d = 0; d < 3; ++d) {
    layout->elements.push(sizes[d]);
    layout->params[d] = d == 2 ? 1 : static_cast<int32_t>(sizes[d]);
  }
  layout->count = sizes[0] * sizes[1];
  return {};
}

// The arguments of an operator, without the layout of its quantization parameters.
struct Call {
  const Tensor& in;
  const Tensor& scales;
  const EValue& zeros;  // may be None
  int64_t low;
  int64_t high;
  int64_t dtype;
  Tensor& out;
};

// The call of an operator whose arguments are (input, scales, zero_points, …) and, from index
// `range` on, (quant_min, quant_max, dtype).
Call call_of(EValue* const* args, size_t range, size_t out) {
  return {args[0]->tensor(),     args[1]->tensor(),         *args[2],
          args[range]->to_int(), args[range + 1]->to_int(), args[range + 2]->to_int(),
          args[out]->tensor()};
}

// Runs a loop of three operands: elements, scales and zero points. For None, zero points are 0.
Status run(KernelContext& ctx, const Call& call, const Layout& layout, DType in_as, DType compute,
           ElementwiseFn fn, LoopArgs& args) {
  constexpr int32_t kOnes[kMaxRank] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  RL_TRY(ctx.resize_like(call.out, call.in));
  const size_t rank = layout.elements.rank;
  Params scales;
  Params zeros;
  Params in;
  Params out;
  int64_t zero = 0;
  scales.along(call.scales, rank, layout.params);
  if (call.zeros.is_none()) {
    zeros.along(call.scales, rank, kOnes);
    zeros.tensor.data = &zero;
    zeros.tensor.dtype = DType::Int64;
  } else {
    zeros.along(call.zeros.tensor(), rank, layout.params);
  }
  const bool grouped = rank != call.in.rank;
  if (grouped) {
    in.along(call.in, rank, layout.elements.sizes);
    out.along(call.out, rank, layout.elements.sizes);
  }
  const Operand operands[] = {operand(grouped ? in.tensor : call.in, in_as),
                              operand(scales.tensor, compute), operand(zeros.tensor, in_as)};
  return run_elementwise(ctx, grouped ? out.tensor : call.out, compute, operands, 3, fn, args);
}

Status quantize(KernelContext& ctx, const Call& call, const Layout& layout, bool tokens) {
  RL_TRY(check_quantized(ctx, "out", call.out, call.dtype));
  RL_TRY(check_params(ctx, "scales", call.scales, layout.count, true));
  RL_TRY(check_params(ctx, "zero_points", call.zeros.tensor(), layout.count, false));
  LoopArgs args;
  RL_TRY(check_bounds(ctx, call.low, call.high, call.out, &args));
  const bool wide = call.scales.dtype == DType::Float64 || call.in.dtype == DType::Float64 ||
                    call.zeros.tensor().dtype == DType::Float64;
  const DType compute = wide ? DType::Float64 : DType::Float32;
  const QuantizeLoops& loops = quantize_loops();
  const ElementwiseFn fn = tokens ? loops.by_token[wide] : loops.by_channel[wide];
  return run(ctx, call, layout, compute, compute, fn, args);
}

Status dequantize(KernelContext& ctx, const Call& call, const Layout& layout) {
  RL_TRY(check_quantized(ctx, "input", call.in, call.dtype));
  RL_TRY(check_params(ctx, "scales", call.scales, layout.count, true));
  bool real = false;
  if (!call.zeros.is_none()) {
    RL_TRY(check_params(ctx, "zero_points", call.zeros.tensor(), layout.count, false));
    real = is_floating(call.zeros.tensor().dtype);
  }
  if (!is_floating(call.out.dtype)) {
    return ctx.fail(Code::InvalidArgument, "out is %s, but must be floating",
                    dtype_name(call.out.dtype));
  }
  const bool wide =
      call.scales.dtype == DType::Float64 || (real && call.zeros.tensor().dtype == DType::Float64);
  const DType compute = wide ? DType::Float64 : DType::Float32;
  const QuantizeLoops& loops = quantize_loops();
  LoopArgs args;
  return run(ctx, call, layout, real ? compute : DType::Int64, compute,
             real ? loops.back_from_real[wide] : loops.back[wide], args);
}

Status axis_of(KernelContext& ctx, const Tensor& in, int64_t dim, size_t* axis) {
  if (in.rank > 0) return wrap_dim(ctx, dim, in.rank, axis);
  return ctx.fail(Code::InvalidArgument, "input has no dimensions, but axis names one");
}

Status check_floating(KernelContext& ctx, const Tensor& in) {
  if (is_floating(in.dtype)) return {};
  return ctx.fail(Code::NotSupported, "input is %s, but must be floating", dtype_name(in.dtype));
}

// Each operation is rounded to the 16-bit type, as in the reference.
void dequantize_half(const void* const* in, void* out, size_t n, LoopArgs* args) {
  const auto dtype = static_cast<DType>(args->i[1]);
  const float* x = static_cast<const float*>(in[0]);
  float* y = static_cast<float*>(out);
  uint16_t half[kChunk];
  const auto round = [&] {
    convert(y, DType::Float32, half, dtype, n);
    convert(half, dtype, y, DType::Float32, n);
  };
  std::copy_n(x, n, y);
  round();
  for (size_t i = 0; i < n; ++i) y[i] -= static_cast<float>(args->i[0]);
  round();
  for (size_t i = 0; i < n; ++i) y[i] *= static_cast<float>(args->d[0]);
}

}  // namespace

// quantize_per_tensor(input, scale, zero_point, quant_min, quant_max, dtype, *, out): scale and
// zero_point are numbers, or tensors with one element.
Status quantize_per_tensor_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[6]->tensor();
  ScalarParams params;
  LoopArgs loop_args;
  RL_TRY(check_input(ctx, in));
  RL_TRY(read_params(ctx, args, &params));
  RL_TRY(check_quantized(ctx, "out", out, args[5]->to_int()));
  RL_TRY(check_bounds(ctx, params.low, params.high, out, &loop_args));
  loop_args.d[0] = 1.0 / params.scale;
  loop_args.i[0] = params.zero;
  const Operand operands[] = {operand(in, DType::Float32)};
  return run_elementwise(ctx, out, DType::Float32, operands, 1, quantize_loops().by_scalar[0],
                         loop_args);
}

// dequantize_per_tensor(input, scale, zero_point, quant_min, quant_max, dtype, *, out_dtype, out)
Status dequantize_per_tensor_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[7]->tensor();
  ScalarParams params;
  RL_TRY(check_quantized(ctx, "input", in, args[5]->to_int()));
  RL_TRY(read_params(ctx, args, &params));
  if (!is_floating(out.dtype)) {
    return ctx.fail(Code::InvalidArgument, "out is %s, but must be floating",
                    dtype_name(out.dtype));
  }
  const bool wide = out.dtype == DType::Float64;
  LoopArgs loop_args;
  loop_args.d[0] = params.scale;
  loop_args.i[0] = params.zero;
  loop_args.i[1] = static_cast<int64_t>(out.dtype);
  const DType compute = wide ? DType::Float64 : DType::Float32;
  const bool half = element_size(out.dtype) == 2;
  const Operand operands[] = {operand(in, compute)};
  return run_elementwise(ctx, out, compute, operands, 1,
                         half ? dequantize_half : quantize_loops().back_by_scalar[wide], loop_args);
}

// quantize_per_channel(input, scales, zero_points, axis, quant_min, quant_max, dtype, *, out)
Status quantize_per_channel_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  size_t axis = 0;
  RL_TRY(check_input(ctx, in));
  RL_TRY(axis_of(ctx, in, args[3]->to_int(), &axis));
  const Call call = call_of(args, 4, 7);
  return quantize(ctx, call, by_axis(in, axis), false);
}

// dequantize_per_channel(input, scales, zero_points, axis, quant_min, quant_max, dtype, *,
// out_dtype, out)
Status dequantize_per_channel_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  size_t axis = 0;
  RL_TRY(axis_of(ctx, in, args[3]->to_int(), &axis));
  const Call call = call_of(args, 4, 8);
  return dequantize(ctx, call, by_axis(in, axis));
}

// quantize_per_token(input, scales, zero_points, quant_min, quant_max, dtype, *, out)
Status quantize_per_token_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  RL_TRY(check_floating(ctx, in));
  const Call call = call_of(args, 3, 6);
  return quantize(ctx, call, by_row(in), true);
}

// dequantize_per_token(input, scales, zero_points, quant_min, quant_max, dtype, output_dtype, *,
// out)
Status dequantize_per_token_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  const Call call = call_of(args, 3, 7);
  return dequantize(ctx, call, by_row(in));
}

// quantize_per_channel_group(input, scales, zero_points, quant_min, quant_max, dtype, group_size,
// *, out)
Status quantize_per_channel_group_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Layout layout;
  RL_TRY(check_floating(ctx, in));
  RL_TRY(by_group(ctx, in, args[1]->tensor(), args[6]->to_int(), &layout));
  const Call call = call_of(args, 3, 7);
  return quantize(ctx, call, layout, true);
}

// dequantize_per_channel_group(input, scales, zero_points, quant_min, quant_max, dtype, group_size,
// output_dtype, *, out)
Status dequantize_per_channel_group_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Layout layout;
  RL_TRY(by_group(ctx, in, args[1]->tensor(), args[6]->to_int(), &layout));
  const Call call = call_of(args, 3, 8);
  return dequantize(ctx, call, layout);
}

}  // namespace rushlight::kernels
