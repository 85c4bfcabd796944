// The tables of a payload's nodes, and which values each kind of node takes.
#pragma once

#include "rushlight/backends/xnnpack/payload/graph.h"
#include "rushlight/core/message.h"
#include "rushlight/core/status.h"

namespace rushlight::xnnpack {

// Reads the operands of a node, as the payload's ids, and its flags. DelegateInvalidCompatibility
// for an unknown kind.
Status read_operands(Node* node, Message& message);

// Whether input `i` of a node may be left out.
bool is_optional(const Node& node, size_t i);
// Whether operand `k` of a node, counting inputs and then outputs, may be a value of this type.
bool takes(const Node& node, size_t k, const Value& value);

}  // namespace rushlight::xnnpack
