// Reads payloads of ExecuTorch's XNNPACK delegate, versions XN00 and XN01: with the header XH00 or
// without, constants in the payload or in the program's named data.
#pragma once

#include "rushlight/backends/xnnpack/payload/graph.h"
#include "rushlight/delegate/backend.h"

namespace rushlight::xnnpack {

// The graph lies in init's allocator, what it points to in the payload and the named data.
// DelegateInvalidCompatibility for a payload that is damaged, of another version, or does not hold
// together; NotSupported for what this runtime has no kernels for. init's message says what and
// where, its place names the node.
Status read_graph(BackendInit& init, Graph* graph);

}  // namespace rushlight::xnnpack
