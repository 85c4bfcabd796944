// Reads the payload of the cpu backend (schema/cpu_engine.fbs) into the parts of a graph.
#pragma once

#include "rushlight/delegate/backend.h"
#include "rushlight/engine/types/graph_parts.h"

namespace rushlight::cpu {

// Everything but constants is copied into init's allocator. DelegateInvalidCompatibility for a
// payload that is damaged or of a newer version, or whose constants are not among the named data.
Status read_payload(BackendInit& init, engine::GraphParts* parts);

}  // namespace rushlight::cpu
