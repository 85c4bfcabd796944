// What both algorithms for the gradient of a convolution's weights share.
#pragma once

#include <cstdint>

#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/convolution/conv.h"
#include "rushlight/kernels/portable/pooling/pool.h"

namespace rushlight::kernels {

// The gradient is a matrix with a row for each (tap, channel). An element is the sum over images
// and pixels of the element of `wide` that the tap reads in that channel, times the element of
// `narrow`.
struct Gradient {
  ConvTensor wide;
  ConvTensor narrow;
  ConvTensor result;  // [columns of all groups, channels, taps…]
  int64_t batch;
  int64_t groups;
  int64_t channels;  // channels of one group of `wide`
  int64_t columns;   // channels of one group of `narrow`
  PoolAxis axes[kMaxSpatial];

  int64_t taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  int64_t rows() const { return channels * taps(); }
  int64_t pixels() const { return axes[0].out * axes[1].out * axes[2].out; }
};

// For adjacent channels of types whose sums are float32. Returns false and does nothing for others,
// or if scratch memory does not suffice.
bool channels_gradient(KernelContext& ctx, const ScratchShares& shares, const Gradient& g);

}  // namespace rushlight::kernels
