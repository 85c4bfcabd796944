// The gradients of a convolution, each of which is a convolution itself: that of the input runs the
// other way (transposed, or not); that of the weights slides the gradient of the outputs over the
// input, with images as channels and stride and dilation exchanged.
#include <algorithm>

#include "rushlight/core/allocator.h"
#include "rushlight/core/message.h"
#include "rushlight/kernels/portable/conv.h"
#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/norm.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/strided_copy.h"

namespace rushlight::kernels {
namespace {

// Arguments in schema order.
enum Argument {
  kGradOutput,
  kInput,
  kWeight,
  kBiasSizes,
  kStride,
  kPadding,
  kDilation,
  kTransposed,
  kOutputPadding,
  kGroups,
  kOutputMask,
  kGradInput,
  kGradWeight,
  kGradBias
};

// Scratch memory that every one of several convolutions uses anew.
class Reused {
 public:
  explicit Reused(KernelContext& ctx) : bytes_(ctx.scratch_left()), memory_(ctx.scratch(bytes_)) {
    if (memory_ == nullptr) bytes_ = 0;
  }
  void run(const Conv& conv) const {
    Allocator allocator(memory_, bytes_);
    Message message;
    KernelContext ctx(message, &allocator);
    run_convolution(ctx, conv);
  }

 private:
  size_t bytes_;
  void* memory_;
};

// The gradient of the input. `forward` describes the convolution that is undone.
Conv input_gradient(const Conv& forward, const Tensor& grad, const Tensor& result) {
  Conv conv = forward;
  conv.transposed = !forward.transposed;
  conv.input = conv_tensor(grad);
  conv.out = conv_tensor(result);
  conv.bias = nullptr;
  std::swap(conv.group_in, conv.group_out);
  return conv;
}

// The elements of a tensor from `offset` on.
Tensor shifted(const Tensor& tensor, int64_t offset) {
  Tensor part = tensor;
  part.data = element_at(tensor, offset);
  part.numel -= offset;
  return part;
}

ConvTensor exchanged(const Tensor& tensor) {
  ConvTensor spread = conv_tensor(tensor);
  std::swap(spread.outer_step, spread.inner_step);
  return spread;
}

// The gradient of the weights, group by group. `wide` is what the kernel slides over (the input of
// a plain convolution, the outputs' gradient of a transposed one), `narrow` the other one.
void weight_gradient(const Reused& scratch, const Conv& forward, const Tensor& wide,
                     const Tensor& narrow, const Tensor& result) {
  Conv conv;
  conv.groups = 1;
  conv.group_in = forward.batch;
  conv.batch = forward.transposed ? forward.group_out : forward.group_in;
  conv.group_out = forward.transposed ? forward.group_in : forward.group_out;
  for (size_t s = 0; s < kMaxSpatial; ++s) {
    conv.stride[s] = forward.dilation[s];
    conv.dilation[s] = forward.stride[s];
    conv.padding[s] = forward.padding[s];
  }
  for (int64_t g = 0; g < forward.groups; ++g) {
    const Tensor input = shifted(wide, g * conv.batch * wide.strides[1]);
    const Tensor weight = shifted(narrow, g * conv.group_out * narrow.strides[1]);
    const Tensor out = shifted(result, g * conv.group_out * result.strides[0]);
    conv.input = exchanged(input);
    conv.weight = exchanged(weight);
    conv.out = exchanged(out);
    scratch.run(conv);
  }
}

// The sum of the gradient over images and pixels, for each channel.
void bias_gradient(const Tensor& grad, const Tensor& result) {
  const ConvTensor g = conv_tensor(grad);
  for (int64_t c = 0; c < result.numel; ++c) {
    double sum = 0.0;
    for (int64_t n = 0; n < grad.sizes[0]; ++n) {
      for (int64_t d = 0; d < g.size[0]; ++d) {
        for (int64_t h = 0; h < g.size[1]; ++h) {
          const int64_t line = n * g.outer_step + c * g.inner_step + d * g.step[0] + h * g.step[1];
          for (int64_t w = 0; w < g.size[2]; ++w) sum += load_value(grad, line + w * g.step[2]);
        }
      }
    }
    store_value(result, c, sum);
  }
}

void fill_zeros(const Tensor& tensor) {
  uint8_t* const bytes = tensor.as<uint8_t>();
  std::fill(bytes, bytes + tensor.nbytes(), uint8_t{0});
}

Status check_gradient(KernelContext& ctx, const Tensor& grad, const Shape& shape) {
  const Span<const int32_t> sizes = grad.shape();
  if (sizes.size() == shape.rank && std::equal(sizes.begin(), sizes.end(), shape.sizes)) return {};
  return ctx.fail(Code::InvalidArgument, "grad_output has shape %s, but the convolution gives %s",
                  ShapeText(sizes).text(), ShapeText(shape.span()).text());
}

}  // namespace

// convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation,
//                      transposed, output_padding, groups, output_mask, *, out0, out1, out2): an
// out that the mask leaves out is not written.
Status convolution_backward_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& grad = args[kGradOutput]->tensor();
  const Tensor& input = args[kInput]->tensor();
  const Tensor& weight = args[kWeight]->tensor();
  const EValue& mask = *args[kOutputMask];
  if (mask.size() != 3) {
    return ctx.fail(Code::InvalidArgument, "output_mask has %zu entries, but must have 3",
                    mask.size());
  }
  RL_TRY(check_floating(ctx, "input", input));
  const ConvArguments arguments = {input,
                                   weight,
                                   nullptr,
                                   *args[kStride],
                                   *args[kPadding],
                                   *args[kDilation],
                                   args[kTransposed]->to_bool(),
                                   *args[kOutputPadding],
                                   args[kGroups]->to_int()};
  Conv forward;
  Shape shape;
  RL_TRY(read_convolution(ctx, arguments, grad, &forward, &shape));
  RL_TRY(check_gradient(ctx, grad, shape));
  Shape channels;
  channels.push(shape.sizes[1]);
  const Span<const int32_t> shapes[] = {input.shape(), weight.shape(), channels.span()};
  for (size_t k = 0; k < 3; ++k) {
    if (!mask.bool_at(k)) continue;
    Tensor& out = args[kGradInput + k]->tensor();
    RL_TRY(check_same_type(ctx, "input", input, out));
    RL_TRY(ctx.resize(out, shapes[k]));
    if (grad.numel == 0 || input.numel == 0) fill_zeros(out);
  }
  if (grad.numel == 0 || input.numel == 0) return {};
  const Reused scratch(ctx);
  if (mask.bool_at(0)) scratch.run(input_gradient(forward, grad, args[kGradInput]->tensor()));
  if (mask.bool_at(1)) {
    const Tensor& wide = forward.transposed ? grad : input;
    const Tensor& narrow = forward.transposed ? input : grad;
    weight_gradient(scratch, forward, wide, narrow, args[kGradWeight]->tensor());
  }
  if (mask.bool_at(2)) bias_gradient(grad, args[kGradBias]->tensor());
  return {};
}

}  // namespace rushlight::kernels
