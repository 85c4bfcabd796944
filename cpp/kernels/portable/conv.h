// A convolution's arguments, checked, and the ways to run one. There are always three spatial
// dimensions here, outermost first: missing ones have size 1.
#pragma once

#include <cstdint>

#include "rushlight/core/evalue.h"
#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/loops/window.h"
#include "rushlight/kernels/portable/scratch_shares.h"

namespace rushlight::kernels {

// A tensor [batch or channels, channels, spatial…] with its strides spread to five dimensions.
struct ConvTensor {
  const Tensor* tensor = nullptr;
  int64_t outer_step = 0;  // of dimension 0
  int64_t inner_step = 0;  // of dimension 1
  int64_t step[kMaxSpatial] = {};
  int32_t size[kMaxSpatial] = {};
};

struct Conv {
  ConvTensor input;  // [batch, channels, …]
  ConvTensor
      weight;  // [out channels, channels of a group, …]; transposed: [channels, out of a group]
  ConvTensor out;
  const Tensor* bias = nullptr;
  int64_t batch = 0;
  int64_t groups = 1;
  int64_t group_in = 0;  // channels of one group
  int64_t group_out = 0;
  bool transposed = false;
  int32_t stride[kMaxSpatial] = {};
  int32_t padding[kMaxSpatial] = {};
  int32_t dilation[kMaxSpatial] = {};

  int64_t taps() const { return int64_t{weight.size[0]} * weight.size[1] * weight.size[2]; }
  int64_t pixels() const { return int64_t{out.size[0]} * out.size[1] * out.size[2]; }
};

// float32, one channel per group: each plane is convolved by itself. False (and nothing is done) if
// its layouts or its kernel are not what this way is for.
bool conv_depthwise(KernelContext& ctx, const Conv& conv);
// float32: the matrix product of weights and unrolled input.
void conv_gemm(KernelContext& ctx, const Conv& conv);
// The same for a transposed convolution, one product per phase of the stride.
void conv_transposed_gemm(KernelContext& ctx, const Conv& conv);
// One of these, for float32.
void conv_float(KernelContext& ctx, const Conv& conv);

// Small groups of channels that lie side by side: products of them leave most of a vector empty, so
// that copies with contiguous planes cost less.
bool wants_planes(const Conv& conv);
// Replaces the weights by a float32 copy in scratch memory, for conv_tiles; not if they are many.
void take_float_weights(KernelContext& ctx, Conv* conv, Tensor* copy);
// float32, float16 and bfloat16: the same on copies of tiles, as float32 and in planes where those
// are wanted. False (and nothing is done) if scratch memory does not suffice for one.
bool conv_tiles(KernelContext& ctx, const ScratchShares& shares, const Conv& conv);
// One input channel per group: the types that conv_any takes.
void conv_lines(KernelContext& ctx, const Conv& conv);
// Every type that has a matrix product: sums in float32, float64, int32 or int64.
void conv_any(KernelContext& ctx, const ScratchShares& shares, const Conv& conv);

// The gradient of the weights of `forward`, from that of its output: floating types.
void conv_weight_gradient(KernelContext& ctx, const Conv& forward, const Tensor& grad,
                          const Tensor& result);

// The pixels of a tensor lie one pixel_step() after the other.
bool pixels_in_line(const ConvTensor& t);
int64_t pixel_step(const ConvTensor& t);

// A tensor of 3, 4 or 5 dimensions with its strides and sizes spread.
ConvTensor conv_tensor(const Tensor& tensor);
// Picks a way to run a convolution whose output has elements.
void run_convolution(KernelContext& ctx, const Conv& conv);

struct ConvArguments {
  const Tensor& input;
  const Tensor& weight;
  const Tensor* bias;
  const EValue& stride;
  const EValue& padding;
  const EValue& dilation;
  bool transposed;
  const EValue& output_padding;
  int64_t groups;
};

// Checks the arguments against each other and the type of `out`, and works out the shape of the
// result; all of `conv` but its out is set. InvalidArgument or NotSupported, naming the argument.
Status read_convolution(KernelContext& ctx, const ConvArguments& arguments, const Tensor& out,
                        Conv* conv, Shape* shape);

}  // namespace rushlight::kernels
