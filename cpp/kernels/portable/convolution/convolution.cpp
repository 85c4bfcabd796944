// aten::convolution: checks its arguments, computes the shape of the result and picks an algorithm.
#include <algorithm>

#include "rushlight/kernels/portable/convolution/conv.h"
#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/linalg/matmul_any.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"

namespace rushlight::kernels {
namespace {

// Reads an int[] argument that has one entry for all spatial dimensions or one for each.
Status read_spatial(KernelContext& ctx, const char* name, const EValue& list, size_t spatial,
                    int64_t lowest, int32_t missing, int32_t* values) {
  std::fill(values, values + kMaxSpatial, missing);
  if (list.size() != 1 && list.size() != spatial) {
    return ctx.fail(Code::InvalidArgument, "%s has %zu entries, but must have %zu", name,
                    list.size(), spatial);
  }
  const size_t first = kMaxSpatial - spatial;
  for (size_t s = first; s < kMaxSpatial; ++s) {
    const int64_t value = list.int_at(list.size() == 1 ? 0 : s - first);
    if (value < lowest || value > INT16_MAX) {
      return ctx.fail(Code::InvalidArgument, "%s has an entry %lld, but must be from %lld to %d",
                      name, static_cast<long long>(value), static_cast<long long>(lowest),
                      INT16_MAX);
    }
    values[s] = static_cast<int32_t>(value);
  }
  return {};
}

Status check_channels(KernelContext& ctx, const Tensor& input, const Tensor& weight, int64_t groups,
                      bool transposed) {
  if (input.rank < 3 || input.rank > kMaxSpatial + 2 || weight.rank != input.rank) {
    return ctx.fail(Code::InvalidArgument,
                    "input has shape %s and weight has %s; both must have 3, 4 or 5 dimensions",
                    ShapeText(input.shape()).text(), ShapeText(weight.shape()).text());
  }
  if (groups < 1 || groups > INT32_MAX) {
    return ctx.fail(Code::InvalidArgument, "groups is %lld, but must be at least 1",
                    static_cast<long long>(groups));
  }
  const int64_t wanted = transposed ? weight.sizes[0] : weight.sizes[1] * groups;
  if (input.sizes[1] != wanted || weight.sizes[0] % groups != 0) {
    return ctx.fail(Code::InvalidArgument,
                    "input has %d channels, which does not fit weight of shape %s and groups %lld",
                    static_cast<int>(input.sizes[1]), ShapeText(weight.shape()).text(),
                    static_cast<long long>(groups));
  }
  return {};
}

Status check_types(KernelContext& ctx, const Tensor& input, const Tensor& weight,
                   const Tensor* bias, int64_t out_channels, const Tensor& out) {
  RL_TRY(check_same_type(ctx, "input", input, out));
  RL_TRY(check_same_type(ctx, "weight", weight, out));
  if (!can_multiply(out.dtype)) {
    return ctx.fail(Code::NotSupported, "input is %s, for which there is no convolution",
                    dtype_name(out.dtype));
  }
  if (bias == nullptr) return {};
  RL_TRY(check_same_type(ctx, "bias", *bias, out));
  if (bias->rank == 1 && bias->sizes[0] == out_channels) return {};
  return ctx.fail(Code::InvalidArgument, "bias has shape %s, but there are %lld output channels",
                  ShapeText(bias->shape()).text(), static_cast<long long>(out_channels));
}

// The size of one spatial dimension of the result. It may be negative or exceed int32, which is an
// error.
int64_t out_size(const Conv& conv, size_t s, int64_t in, int64_t kernel, int64_t output_padding) {
  const int64_t reach = conv.dilation[s] * (kernel - 1) + 1;
  if (conv.transposed) {
    return (in - 1) * conv.stride[s] - 2 * int64_t{conv.padding[s]} + reach + output_padding;
  }
  const int64_t padded = in + 2 * int64_t{conv.padding[s]};
  return padded < reach ? -1 : (padded - reach) / conv.stride[s] + 1;
}

Status find_shape(KernelContext& ctx, const Conv& conv, const Tensor& input, const Tensor& weight,
                  const int32_t* output_padding, Shape* shape) {
  shape->push(input.sizes[0]);
  bool fits = shape->push(conv.groups * conv.group_out);
  for (size_t d = 2; d < input.rank; ++d) {
    const size_t s = d + kMaxSpatial - input.rank;
    const int64_t size = out_size(conv, s, input.sizes[d], weight.sizes[d], output_padding[s]);
    fits = fits && weight.sizes[d] > 0 && shape->push(size);
  }
  if (fits) return {};
  return ctx.fail(Code::InvalidArgument,
                  "input of shape %s is too small, with its padding, for weight of shape %s",
                  ShapeText(input.shape()).text(), ShapeText(weight.shape()).text());
}

// Output padding only selects one of the sizes that a stride leaves open, so it must be less than
// the stride.
Status check_output_padding(KernelContext& ctx, const Conv& conv, const int32_t* output_padding) {
  for (size_t s = 0; s < kMaxSpatial; ++s) {
    if (output_padding[s] < std::max(conv.stride[s], conv.dilation[s])) continue;
    return ctx.fail(Code::InvalidArgument,
                    "output_padding has an entry %d, but must be less than stride or dilation",
                    static_cast<int>(output_padding[s]));
  }
  return {};
}

}  // namespace

int64_t input_position(const Conv& conv, size_t s, int64_t output, int64_t tap) {
  const int64_t shift = tap * conv.dilation[s] - conv.padding[s];
  int64_t at = output * conv.stride[s] + shift;
  if (conv.transposed) {
    if ((output - shift) % conv.stride[s] != 0) return -1;
    at = (output - shift) / conv.stride[s];
  }
  return at >= 0 && at < conv.input.size[s] ? at : -1;
}

ConvTensor conv_tensor(const Tensor& tensor) {
  ConvTensor spread;
  spread.tensor = &tensor;
  spread.outer_stride = tensor.strides[0];
  spread.inner_stride = tensor.strides[1];
  const size_t missing = kMaxSpatial + 2 - tensor.rank;
  for (size_t s = 0; s < kMaxSpatial; ++s) {
    spread.size[s] = s < missing ? 1 : tensor.sizes[s - missing + 2];
    spread.strides[s] = s < missing ? 0 : tensor.strides[s - missing + 2];
  }
  return spread;
}

void conv_float(KernelContext& ctx, const Conv& conv) {
  const bool depthwise = conv.group_in == 1 && conv.group_out == 1;
  if (depthwise && conv_depthwise(ctx, conv)) return;
  if (!conv.transposed) return conv_gemm(ctx, conv);
  if (depthwise) return conv_lines(ctx, conv);
  conv_transposed_gemm(ctx, conv);
}

void run_convolution(KernelContext& ctx, const Conv& conv) {
  const Tensor& input = *conv.input.tensor;
  const bool half = input.dtype == DType::Float16 || input.dtype == DType::BFloat16;
  const bool single = input.dtype == DType::Float32;
  const bool channels = single && wants_channels(conv);
  if (single && !channels && input.numel <= INT32_MAX) return conv_float(ctx, conv);
  Conv tiled = conv;
  Tensor weights;
  if (half || channels) take_float_weights(ctx, &tiled, &weights);
  const ScratchShares shares(ctx);
  if ((half || channels) && conv_tiles(ctx, shares, tiled)) return;
  if (conv.group_in == 1) return conv_lines(ctx, conv);
  conv_any(ctx, shares, conv);
}

Status read_convolution(KernelContext& ctx, const ConvArguments& arguments, const Tensor& out,
                        Conv* conv, Shape* shape) {
  const Tensor& input = arguments.input;
  const Tensor& weight = arguments.weight;
  conv->bias = arguments.bias;
  conv->groups = arguments.groups;
  conv->transposed = arguments.transposed;
  RL_TRY(check_channels(ctx, input, weight, conv->groups, conv->transposed));
  const size_t spatial = input.rank - size_t{2};
  int32_t output_padding[kMaxSpatial] = {};
  RL_TRY(read_spatial(ctx, "stride", arguments.stride, spatial, 1, 1, conv->stride));
  RL_TRY(read_spatial(ctx, "padding", arguments.padding, spatial, 0, 0, conv->padding));
  RL_TRY(read_spatial(ctx, "dilation", arguments.dilation, spatial, 1, 1, conv->dilation));
  if (conv->transposed) {
    RL_TRY(read_spatial(ctx, "output_padding", arguments.output_padding, spatial, 0, 0,
                        output_padding));
    RL_TRY(check_output_padding(ctx, *conv, output_padding));
  }
  conv->batch = input.sizes[0];
  conv->group_in = input.sizes[1] / conv->groups;
  conv->group_out = conv->transposed ? weight.sizes[1] : weight.sizes[0] / conv->groups;
  RL_TRY(check_types(ctx, input, weight, conv->bias, conv->groups * conv->group_out, out));
  RL_TRY(find_shape(ctx, *conv, input, weight, output_padding, shape));
  conv->input = conv_tensor(input);
  conv->weight = conv_tensor(weight);
  return {};
}

// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups,
//             *, out)
Status convolution_out(KernelContext& ctx, EValue* const* args) {
  const ConvArguments arguments = {args[0]->tensor(),  args[1]->tensor(), args[2]->tensor_or_null(),
                                   *args[3],           *args[4],          *args[5],
                                   args[6]->to_bool(), *args[7],          args[8]->to_int()};
  Tensor& out = args[9]->tensor();
  Conv conv;
  Shape shape;
  RL_TRY(read_convolution(ctx, arguments, out, &conv, &shape));
  RL_TRY(ctx.resize(out, shape.span()));
  if (out.numel == 0) return {};
  conv.out = conv_tensor(out);
  run_convolution(ctx, conv);
  return {};
}

}  // namespace rushlight::kernels
