// Checks a convolution's arguments, and declares the algorithms that run one. There are always
// three spatial dimensions here, outermost first: a missing one has size 1.
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

// A tensor [batch or channels, channels, spatial…] with its strides extended to five dimensions.
struct ConvTensor {
  const Tensor* tensor = nullptr;
  int64_t outer_stride = 0;  // stride of dimension 0
  int64_t inner_stride = 0;  // stride of dimension 1
  int64_t strides[kMaxSpatial] = {};
  int32_t size[kMaxSpatial] = {};
};

struct Conv {
  ConvTensor input;  // [batch, channels, …]
  ConvTensor
      weight;  // [out channels, channels of a group, …]; transposed: [channels, out of a group]
  ConvTensor out;
  const Tensor* bias = nullptr;
  const float* packed = nullptr;  // a second copy of the weights, packed by pack_weights
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

// float32, one channel per group: convolves each plane separately. Returns false and does nothing
// if it does not support the layouts or the kernel.
bool conv_depthwise(KernelContext& ctx, const Conv& conv);
// float32: a matrix product of the weights and the unrolled input.
void conv_gemm(KernelContext& ctx, const Conv& conv);
// The same for a transposed convolution: one product for each phase of the stride.
void conv_transposed_gemm(KernelContext& ctx, const Conv& conv);
// float32: picks one of the functions above.
void conv_float(KernelContext& ctx, const Conv& conv);

// True for small groups whose channels are adjacent in memory. A matrix product would leave most of
// each vector empty for them.
bool wants_channels(const Conv& conv);
// Packs the weights of `groups` groups, starting with group `first`, as float32 [groups, taps, in,
// out].
void pack_weights(const Conv& conv, int64_t first, int64_t groups, float* packed);
// float32: convolves such groups of one image. The input is a copy that includes all positions that
// the taps read, with zeros as padding. The weights must be packed. The channels of `out` are
// adjacent in memory, too. The weights and `out` need kChannelSlack floats of memory after their
// end.
void conv_channels(const Conv& conv);
// Copies the weights to scratch memory as float32 for conv_tiles, unless they are too large.
void take_float_weights(KernelContext& ctx, Conv* conv, Tensor* copy);
// float32, float16 and bfloat16: copies tiles and runs one of the float32 functions on them.
// Returns false and does nothing if scratch memory does not suffice for one tile.
bool conv_tiles(KernelContext& ctx, const ScratchShares& shares, const Conv& conv);
// One input channel per group; takes the same types as conv_any.
void conv_lines(KernelContext& ctx, const Conv& conv);
// A worker's memory is its share of the scratch memory, or the stack if the shares are smaller.
constexpr size_t kStackBytes = 6 * 1024;
inline size_t share_bytes(const ScratchShares& shares) {
  return std::max(shares.bytes(), kStackBytes);
}
// Calls run(item) for every item. make(memory) creates one worker for each share.
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

// For every type that has a matrix product. Sums are float32, float64, int32 or int64.
void conv_any(KernelContext& ctx, const ScratchShares& shares, const Conv& conv);

// Computes the gradient of the weights of `forward` from the gradient of its output, for floating
// types.
void conv_weight_gradient(KernelContext& ctx, const Conv& forward, const Tensor& grad,
                          const Tensor& result);

// a * b, or a number greater than any memory if the product overflows.
inline int64_t many(int64_t a, int64_t b) {
  constexpr int64_t kMaxFactor = int64_t{1} << 31;
  return std::min(a, kMaxFactor) * std::min(b, kMaxFactor);
}

// The input position that a tap reads for an output position along dimension s, or -1 if none.
int64_t input_position(const Conv& conv, size_t s, int64_t output, int64_t tap);

// A float32 box of adjacent channels and some pixels of one image, channels innermost. Positions
// outside of the tensor are zeros.
struct ChannelBox {
  int64_t offset;  // offset of the first channel at position 0
  int64_t channels;
  int64_t first[kMaxSpatial];
  int64_t size[kMaxSpatial];
};
void copy_box(const ConvTensor& from, const ChannelBox& box, float* to);

// True if pixels follow each other in memory, pixel_stride() elements apart.
bool pixels_in_line(const ConvTensor& t);
int64_t pixel_stride(const ConvTensor& t);

// A tensor of 3, 4 or 5 dimensions, with its strides and sizes extended to five.
ConvTensor conv_tensor(const Tensor& tensor);
// Picks an algorithm for a convolution and runs it; its output must have elements.
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

// Checks the arguments against each other and against the type of `out`, and computes the shape of
// the result. Sets all fields of `conv` except `out`. Returns InvalidArgument or NotSupported and
// names the argument.
Status read_convolution(KernelContext& ctx, const ConvArguments& arguments, const Tensor& out,
                        Conv* conv, Shape* shape);

}  // namespace rushlight::kernels
