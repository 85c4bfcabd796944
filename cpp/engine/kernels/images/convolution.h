// Float32 convolutions, pools and resizes of images (../../types/convolution.h).
#pragma once

#include <cstddef>

#include "rushlight/engine/types/convolution.h"
#include "rushlight/platform/workers.h"

namespace rushlight::engine {

// The bytes of scratch that convolve() needs; 0 for most 1 by 1 convolutions.
size_t convolution_scratch(const ConvGeometry& geometry);
// Dense and grouped. `scratch` has convolution_scratch() bytes.
void convolve(const Convolution& convolution, void* scratch, Workers* workers);
// Depthwise: groups == in_channels, out_channels a multiple of them. Needs no scratch.
void convolve_depthwise(const Convolution& convolution, Workers* workers);

size_t winograd_scratch(const ConvGeometry& geometry, size_t threads);
void convolve_winograd(const Convolution& convolution, void* scratch, Workers* workers);

size_t transposed_scratch(const ConvGeometry& geometry);
// Transposed: `geometry` is that of the transposed convolution itself (in is the smaller image),
// the panels are of a matrix with a row for each input channel (of a group) and a column for each
// (tap y, tap x, output channel of a group).
void convolve_transposed(const Convolution& convolution, void* scratch, Workers* workers);

void pool(const Pooling& pooling, Workers* workers);

void arg_max(const ArgMax& maximum, Workers* workers);

void resize_bilinear(const Resize& resize, Workers* workers);

}  // namespace rushlight::engine
