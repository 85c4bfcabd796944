// A convolution's arguments, checked, and the ways to run one. There are always three spatial
// dimensions here, outermost first: missing ones have size 1.
#pragma once

#include <cstdint>

#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/loops/window.h"

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
// Every type that has a matrix product: sums in float32, float64 or int64.
void conv_any(const Conv& conv);

}  // namespace rushlight::kernels
