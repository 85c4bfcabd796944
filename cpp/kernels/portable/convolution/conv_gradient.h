// What the two ways to the gradient of a convolution's weights share.
#pragma once

#include <cstdint>

#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/convolution/conv.h"
#include "rushlight/kernels/portable/pooling/pool.h"

namespace rushlight::kernels {

// Row (tap, channel) by column: the sum over images and pixels of what the tap of that channel of
// `wide` meets times the element of `narrow`.
struct Gradient {
  ConvTensor wide;
  ConvTensor narrow;
  ConvTensor result;  // [columns of all groups, channels, taps…]
  int64_t batch;
  int64_t groups;
  int64_t channels;  // of one group of `wide`
  int64_t columns;   // channels of one group of `narrow`
  PoolAxis axes[kMaxSpatial];

  int64_t taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  int64_t rows() const { return channels * taps(); }
  int64_t pixels() const { return axes[0].out * axes[1].out * axes[2].out; }
};

// Channels side by side, of types that are summed in float32. False (and nothing is done) if they
// are not, or if scratch memory does not suffice.
bool channels_gradient(KernelContext& ctx, const ScratchShares& shares, const Gradient& g);

}  // namespace rushlight::kernels
