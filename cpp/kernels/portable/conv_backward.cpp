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

// What is asked for, and what of; an out that is not asked for is nullptr.
struct Gradients {
  Conv forward;
  const Tensor& grad;
  const Tensor& input;
  const Tensor& weight;
  const Tensor* out[3] = {};
};

void run_input_gradient(KernelContext& ctx, const Conv& forward, const Tensor& grad,
                        const Tensor& result) {
  run_convolution(ctx, input_gradient(forward, grad, result));
}

Status run_bias_gradient(KernelContext& ctx, const Tensor& grad, const Tensor& result) {
  bool reduced[kMaxRank];
  for (size_t d = 0; d < grad.rank; ++d) reduced[d] = d != 1;
  Tensor out = result;
  return sum_over(ctx, grad, reduced, false, out);
}

Status run(KernelContext& ctx, const Gradients& g) {
  const Reused scratch(ctx);
  if (g.out[0] != nullptr) {
    scratch.run([&](KernelContext& part) {
      run_input_gradient(part, g.forward, g.grad, *g.out[0]);
    });
  }
  if (g.out[1] != nullptr) {
    scratch.run([&](KernelContext& part) {
      conv_weight_gradient(part, g.forward, g.grad, *g.out[1]);
    });
  }
  return g.out[2] != nullptr ? run_bias_gradient(ctx, g.grad, *g.out[2]) : Status{};
}

// The products convert what they read once for every tap that meets it, and groups leave only
// parts of vectors that run along channels: copies as float32, groups contiguous, cost less.
bool wants_copies(const Gradients& g) {
  const DType dtype = g.input.dtype;
  if (dtype == DType::Float16 || dtype == DType::BFloat16) return true;
  return dtype == DType::Float32 && g.forward.groups > 1 && g.forward.input.inner_step == 1;
}

// Of the scratch memory seven eighths at most are for copies, so that products have some.
bool copies_fit(const KernelContext& ctx, const Gradients& g) {
  constexpr int64_t kRounding = 4 * KernelContext::kScratchAlignment;
  const int64_t floats = g.grad.numel + g.input.numel + 2 * g.weight.numel + kRounding;
  return floats <= static_cast<int64_t>(ctx.scratch_left() / sizeof(float) / 8 * 7);
}

// A float32 tensor of the shape of another one in scratch memory, contiguous or in the same order.
class FloatCopy {
 public:
  FloatCopy(KernelContext& ctx, const Tensor& like, bool contiguous) : like_(like), tensor_(like) {
    tensor_.dtype = DType::Float32;
    tensor_.data = ctx.scratch(tensor_.nbytes());
    if (!contiguous) return;
    static constexpr uint8_t kOrder[] = {0, 1, 2, 3, 4};
    tensor_.dim_order = kOrder;
    tensor_.strides = strides_;
    strides_of(like.shape(), kOrder, strides_);
  }
  FloatCopy(const FloatCopy&) = delete;
  FloatCopy& operator=(const FloatCopy&) = delete;

  const Tensor& tensor() const { return tensor_; }
  void read(KernelContext& ctx) const { copy(ctx, like_, tensor_); }
  void write_back(KernelContext& ctx) const { copy(ctx, tensor_, like_); }

 private:
  static void copy(KernelContext& ctx, const Tensor& from, const Tensor& to) {
    CopyBlock block;
    for (size_t d = 0; d < from.rank; ++d) block.push(from.sizes[d], from.strides[d], to.strides[d]);
    converting_copy(ctx, from.data, from.dtype, to.data, to.dtype, block);
  }

  const Tensor& like_;
  Tensor tensor_;
  int32_t strides_[kMaxSpatial + 2];
};

Status run_on_copies(KernelContext& ctx, const Gradients& g) {
  const bool contiguous = g.forward.groups > 1;
  const FloatCopy grad(ctx, g.grad, contiguous);
  const FloatCopy weight(ctx, g.weight, contiguous);
  grad.read(ctx);
  weight.read(ctx);
  Conv forward = g.forward;
  forward.weight = conv_tensor(weight.tensor());
  const Reused scratch(ctx);
  if (g.out[0] != nullptr) {
    scratch.run([&](KernelContext& part) {
      const FloatCopy out(part, *g.out[0], contiguous);
      run_input_gradient(part, forward, grad.tensor(), out.tensor());
      out.write_back(part);
    });
  }
  if (g.out[1] != nullptr) {
    scratch.run([&](KernelContext& part) {
      const FloatCopy input(part, g.input, contiguous);
      const FloatCopy out(part, *g.out[1], contiguous);
      input.read(part);
      forward.input = conv_tensor(input.tensor());
      conv_weight_gradient(part, forward, grad.tensor(), out.tensor());
      out.write_back(part);
    });
  }
  return g.out[2] != nullptr ? run_bias_gradient(ctx, g.grad, *g.out[2]) : Status{};
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
  Gradients gradients{forward, grad, input, weight};
  for (size_t k = 0; k < 3; ++k) {
    if (mask.bool_at(k)) gradients.out[k] = &args[kGradInput + k]->tensor();
  }
  if (wants_copies(gradients) && copies_fit(ctx, gradients)) return run_on_copies(ctx, gradients);
  return run(ctx, gradients);
}

}  // namespace rushlight::kernels
