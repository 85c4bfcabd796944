// A convolution's arguments, checked, and the ways to run one. There are always three spatial
// dimensions here, outermost first: missing ones have size 1.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rushlight/core/evalue.h"
#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/loops/reduction/window.h"
#include "rushlight/kernels/portable/scratch_shares.h"

namespace rushlight::kernels {

// A tensor [batch or channels, channels, spatial…] with its strides spread to five dimensions.
struct ConvTensor {
  const Tensor* tensor = nullptr;
  int64_t outer_stride = 0;  // of dimension 0
  int64_t inner_stride = 0;  // of dimension 1
  int64_t strides[kMaxSpatial] = {};
  int32_t size[kMaxSpatial] = {};
};

struct Conv {
  ConvTensor input;  // [batch, channels, …]
  ConvTensor
      weight;  // [out channels, channels of a group, …]; transposed: [channels, out of a group]
  ConvTensor out;
  const Tensor* bias = nullptr;
  const float* packed = nullptr;  // the weights once more, as pack_weights leaves them
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

// Small groups of channels that lie side by side: products of them leave most of a vector empty.
bool wants_channels(const Conv& conv);
// Their weights as float32 [groups, taps, in, out], from group `first` on.
void pack_weights(const Conv& conv, int64_t first, int64_t groups, float* packed);
// float32: a convolution of such groups of one image, on a copy of the input that holds all that
// the taps meet, zeros where that is padding. Weights are packed; they and `out`, whose channels
// lie side by side as well, have kChannelSlack floats behind them.
void conv_channels(const Conv& conv);
// Makes a float32 copy of the weights in scratch memory for conv_tiles; not if they are many.
void take_float_weights(KernelContext& ctx, Conv* conv, Tensor* copy);
// float32, float16 and bfloat16: one of the float32 ways on copies of tiles. False (and nothing is
// done) if scratch memory does not suffice for one.
bool conv_tiles(KernelContext& ctx, const ScratchShares& shares, const Conv& conv);
// One input channel per group: the types that conv_any takes.
void conv_lines(KernelContext& ctx, const Conv& conv);
// A worker's memory: its share of the scratch memory, or the stack if shares are smaller.
constexpr size_t kStackBytes = 6 * 1024;
inline size_t share_bytes(const ScratchShares& shares) {
  return std::max(shares.bytes(), kStackBytes);
}
// Calls run(item) for every item, on the workers that make(memory) returns, one for each share.
template <typename Make>
void run_items(KernelContext& ctx, const ScratchShares& shares, int64_t items, Make make) {
  if (shares.bytes() < kStackBytes) {
    alignas(64) uint8_t stack[kStackBytes];
    auto worker = make(stack);
    for (int64_t item = 0; item < items; ++item) worker.run(item);
    return;
  }
  shares.run(ctx, items, [&](int64_t share, int64_t first, int64_t stride) {
    auto worker = make(shares.memory(share));
    for (int64_t item = first; item < items; item += stride) worker.run(item);
  });
}

// Every type that has a matrix product: sums in float32, float64, int32 or int64.
void conv_any(KernelContext& ctx, const ScratchShares& shares, const Conv& conv);

// The gradient of the weights of `forward`, from that of its output: floating types.
void conv_weight_gradient(KernelContext& ctx, const Conv& forward, const Tensor& grad,
                          const Tensor& result);

// a * b, or a number too large for any memory if that overflows.
inline int64_t many(int64_t a, int64_t b) {
  constexpr int64_t kMost = int64_t{1} << 31;
  return std::min(a, kMost) * std::min(b, kMost);
}

// The input position that a tap reads for an output along one dimension, or -1.
int64_t met_by(const Conv& conv, size_t s, int64_t output, int64_t tap);

// A box of `channels` side by side in one image as float32, channels innermost; it may stick out of
// the tensor, where zeros are.
struct ChannelBox {
  int64_t offset;  // of the first channel at position 0
  int64_t channels;
  int64_t first[kMaxSpatial];
  int64_t size[kMaxSpatial];
};
void copy_box(const ConvTensor& from, const ChannelBox& box, float* to);

// The pixels of a tensor lie one pixel_stride() after the other.
bool pixels_in_line(const ConvTensor& t);
int64_t pixel_stride(const ConvTensor& t);

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
