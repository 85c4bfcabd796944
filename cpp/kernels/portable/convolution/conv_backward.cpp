// The gradients of a convolution. The gradient of the input is a convolution in the other
// direction: transposed if the forward one is not, and the reverse. The gradient of the bias is a
// sum over images and pixels.
#include <algorithm>

#include "rushlight/core/allocator.h"
#include "rushlight/kernels/portable/convolution/conv.h"
#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/reduction/reduce.h"

namespace rushlight::kernels {
namespace {

// Indices of the arguments, in schema order.
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

// Scratch memory that the gradients use one after the other.
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

// Describes the convolution that computes the gradient of the input of `forward`.
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

// The gradients to compute, and their operands. An output that is not wanted is nullptr.
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
    scratch.run(
        [&](KernelContext& part) { run_input_gradient(part, g.forward, g.grad, *g.out[0]); });
  }
  if (g.out[1] != nullptr) {
    scratch.run(
        [&](KernelContext& part) { conv_weight_gradient(part, g.forward, g.grad, *g.out[1]); });
  }
  return g.out[2] != nullptr ? run_bias_gradient(ctx, g.grad, *g.out[2]) : Status{};
}

// The products convert an element again for every tap that reads it, so that float32 copies cost
// less. Where channels are adjacent in memory, boxes of them are copied anyway.
bool wants_copies(const Gradients& g) {
  const bool half = g.input.dtype == DType::Float16 || g.input.dtype == DType::BFloat16;
  return half && g.forward.input.inner_stride != 1;
}

// The number of groups whose copies fit into seven eighths of the scratch memory. The products need
// the rest.
int64_t groups_that_fit(const KernelContext& ctx, const Gradients& g) {
  constexpr int64_t kRounding = 4 * KernelContext::kScratchAlignment;
  const int64_t room = static_cast<int64_t>(ctx.scratch_left() / sizeof(float) / 8 * 7) - kRounding;
  const int64_t floats = g.grad.numel + g.input.numel + 2 * g.weight.numel;
  return std::min(room / (floats / g.forward.groups), g.forward.groups);
}

// The part of a tensor that belongs to some of the groups: a range of one dimension.
struct GroupRange {
  int64_t first;
  int64_t count;
  int64_t total;  // number of all groups
};

// A float32 copy of such a part in scratch memory, in the dim order of the tensor.
class FloatCopy {
 public:
  FloatCopy(KernelContext& ctx, const Tensor& like, size_t dim, const GroupRange& groups)
      : like_(like), tensor_(like) {
    const int64_t each = like.sizes[dim] / groups.total;
    offset_ = groups.first * each * like.strides[dim];
    std::copy_n(like.sizes, like.rank, sizes_);
    sizes_[dim] = static_cast<int32_t>(groups.count * each);
    strides_of({sizes_, like.rank}, tensor_.dim_order, strides_);
    count_elements({sizes_, like.rank}, &tensor_.numel);
    tensor_.sizes = sizes_;
    tensor_.strides = strides_;
    tensor_.dtype = DType::Float32;
    tensor_.data = ctx.scratch(tensor_.nbytes());
  }
  FloatCopy(const FloatCopy&) = delete;
  FloatCopy& operator=(const FloatCopy&) = delete;

  const Tensor& tensor() const { return tensor_; }
  void read(KernelContext& ctx) const {
    CopyBlock block;
    for (size_t d = 0; d < like_.rank; ++d) block.push(sizes_[d], like_.strides[d], strides_[d]);
    converting_copy(ctx, element_at(like_, offset_), like_.dtype, tensor_.data, tensor_.dtype,
                    block);
  }
  void write_back(KernelContext& ctx) const {
    CopyBlock block;
    for (size_t d = 0; d < like_.rank; ++d) block.push(sizes_[d], strides_[d], like_.strides[d]);
    converting_copy(ctx, tensor_.data, tensor_.dtype, element_at(like_, offset_), like_.dtype,
                    block);
  }

 private:
  const Tensor& like_;
  Tensor tensor_;
  int64_t offset_;
  int32_t sizes_[kMaxSpatial + 2];
  int32_t strides_[kMaxSpatial + 2];
};

// Computes the gradients of input and weights of some groups.
void run_groups(KernelContext& ctx, const Gradients& g, const GroupRange& groups) {
  const FloatCopy grad(ctx, g.grad, 1, groups);
  const FloatCopy weight(ctx, g.weight, 0, groups);
  grad.read(ctx);
  weight.read(ctx);
  Conv forward = g.forward;
  forward.groups = groups.count;
  forward.weight = conv_tensor(weight.tensor());
  const Reused scratch(ctx);
  if (g.out[0] != nullptr) {
    scratch.run([&](KernelContext& part) {
      const FloatCopy out(part, *g.out[0], 1, groups);
      run_input_gradient(part, forward, grad.tensor(), out.tensor());
      out.write_back(part);
    });
  }
  if (g.out[1] != nullptr) {
    scratch.run([&](KernelContext& part) {
      const FloatCopy input(part, g.input, 1, groups);
      const FloatCopy out(part, *g.out[1], 0, groups);
      input.read(part);
      forward.input = conv_tensor(input.tensor());
      conv_weight_gradient(part, forward, grad.tensor(), out.tensor());
      out.write_back(part);
    });
  }
}

Status run_on_copies(KernelContext& ctx, const Gradients& g, int64_t fit) {
  const int64_t all = g.forward.groups;
  const Reused scratch(ctx);
  for (int64_t first = 0; first < all; first += fit) {
    scratch.run([&](KernelContext& part) {
      run_groups(part, g, {first, std::min(fit, all - first), all});
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
//                      transposed, output_padding, groups, output_mask, *, out0, out1, out2):
// outputs that the mask excludes are not written.
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
  const int64_t fit = wants_copies(gradients) ? groups_that_fit(ctx, gradients) : 0;
  return fit > 0 ? run_on_copies(ctx, gradients, fit) : run(ctx, gradients);
}

}  // namespace rushlight::kernels
