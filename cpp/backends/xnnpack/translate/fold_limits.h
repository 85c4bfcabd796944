// Limits of integers that lie behind a node of their own move into the node that computes these.
#pragma once

#include "rushlight/backends/xnnpack/payload/graph.h"

namespace rushlight::xnnpack {

// A Clamp without limits is left where one was folded: its result is its input.
void fold_limits(Graph* graph);

}  // namespace rushlight::xnnpack
