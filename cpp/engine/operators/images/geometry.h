// Sizes of convolutions and pools, checked.
#pragma once

#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/operators/operator.h"

namespace rushlight::engine {

// Products of what is read have no overflow: a padded image has at most kMaxViewNumel elements.
// Images are [N, C, H, W]. The output must lie channels last and without gaps, and have the sizes
// that follow from the input's and the window (of a transposed convolution, the other way round:
// output padding may make it larger by less than a stride).
Status read_geometry(const Setup& setup, const View& in, const View& out, const Window& window,
                     bool transposed, ConvGeometry* geometry);

// Channels of images that were read, in so many groups; depthwise: one input channel in each.
Status read_groups(const Setup& setup, int64_t groups, bool depthwise, ConvGeometry* geometry);

// A stride that is never taken must not be multiplied with a stride of memory that is not either.
void drop_idle_strides(ConvGeometry* geometry);

// True if the memory is [N, H, W, C] without gaps.
bool is_channels_last(const View& image);

}  // namespace rushlight::engine
