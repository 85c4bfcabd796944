// Reads payloads of ExecuTorch's XNNPACK delegate, versions XN00 and XN01: with the header XH00 or
// without, constants in the payload or in the program's named data.
#pragma once

#include "rushlight/backends/xnnpack/payload/graph.h"
#include "rushlight/delegate/backend.h"

namespace rushlight::xnnpack {

// The graph lies in init's allocator and points into the payload and the named data.
// DelegateInvalidCompatibility for a payload that is damaged, inconsistent or of another version;
// NotSupported for nodes that this runtime has no kernels for. init's message gives the reason, its
// place the node.
Status read_graph(BackendInit& init, Graph* graph);

}  // namespace rushlight::xnnpack
