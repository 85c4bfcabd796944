// Sizes of convolutions and pools, checked.
#pragma once

#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/operators/operator.h"

namespace rushlight::engine {

// Later products of these numbers do not overflow: a padded image has at most kMaxViewNumel
// elements. Images are [N, C, H, W]. The output must lie channels last and without gaps, and have
// the sizes that follow from the input's and the window (for a transposed convolution, the input's
// follow from the output's, which output padding may make larger by less than a stride).
Status read_geometry(const Setup& setup, const View& in, const View& out, const Window& window,
                     bool transposed, ConvGeometry* geometry);

// Checks that the images' channels divide into `groups`; with depthwise, one input channel in each.
Status read_groups(const Setup& setup, int64_t groups, bool depthwise, ConvGeometry* geometry);

// Sets the window's stride to 1 along a dimension with one result: nothing uses it, and multiplied
// by a stride of memory it could overflow.
void drop_idle_strides(ConvGeometry* geometry);

// True if the memory is [N, H, W, C] without gaps.
bool is_channels_last(const View& image);
Status check_channels_last(const Setup& setup, const char* name, const View& image);

}  // namespace rushlight::engine
