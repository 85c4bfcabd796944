// The gradients of a convolution. That of the input is a convolution the other way (transposed, or
// not); that of the bias a sum over images and pixels.
#include <algorithm>

#include "rushlight/core/allocator.h"
#include "rushlight/kernels/portable/conv.h"
#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/reduce.h"
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

// Scratch memory that one gradient after the other uses.
class Reused {
 public:
  explicit Reused(KernelContext& ctx)
      : ctx_(ctx), bytes_(ctx.scratch_left()), memory_(ctx.scratch(bytes_)) {
    if (memory_ == nullptr) bytes_ = 0;
  }
  template <typename Body>
  void run(Body body) const {
    Allocator allocator(memory_, bytes_);
    KernelContext ctx = ctx_.with_scratch(&allocator);
    body(ctx);
  }

 private:
  KernelContext& ctx_;
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
  if (mask.bool_at(0)) {
    const Conv conv = input_gradient(forward, grad, args[kGradInput]->tensor());
    scratch.run([&](KernelContext& part) { run_convolution(part, conv); });
  }
  if (mask.bool_at(1)) {
    const Tensor& out = args[kGradWeight]->tensor();
    scratch.run([&](KernelContext& part) { conv_weight_gradient(part, forward, grad, out); });
  }
  if (!mask.bool_at(2)) return {};
  bool reduced[kMaxRank];
  for (size_t d = 0; d < grad.rank; ++d) reduced[d] = d != 1;
  return sum_over(ctx, grad, reduced, false, args[kGradBias]->tensor());
}

}  // namespace rushlight::kernels
