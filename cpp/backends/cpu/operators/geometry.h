// Sizes of convolutions and pools, read from the payload and checked.
#pragma once

#include "rushlight/backends/cpu/kernels/convolution.h"
#include "rushlight/backends/cpu/operator.h"

namespace rushlight::cpu {

// What the payload says of a window: two numbers each, of padding four (top, left, bottom, right).
struct Window {
  fb::Vector<int64_t> kernel;
  fb::Vector<int64_t> stride;
  fb::Vector<int64_t> padding;
  fb::Vector<int64_t> dilation;
};

// Products of what is read have no overflow: a padded image has at most kMaxViewNumel elements.
// Images are [N, C, H, W]. The output must lie channels last and without gaps, and have the sizes
// that follow from the input's and the window (of a transposed convolution, the other way round:
// output padding may make it larger by less than a stride).
Status read_geometry(const Setup& setup, const View& in, const View& out, const Window& window,
                     bool transposed, ConvGeometry* geometry);

// True if the memory is [N, H, W, C] without gaps.
bool is_channels_last(const View& image);

}  // namespace rushlight::cpu
