// Moves the limits of a separate Clamp on integers into the node that computes them.
#pragma once

#include "rushlight/backends/xnnpack/payload/graph.h"

namespace rushlight::xnnpack {

// The folded Clamp stays in the graph without limits; its result is its input.
void fold_limits(Graph* graph);

}  // namespace rushlight::xnnpack
