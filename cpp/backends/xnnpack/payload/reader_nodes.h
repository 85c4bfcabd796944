// The tables of a payload's nodes, and what values each kind of node takes.
#pragma once

#include "rushlight/backends/xnnpack/payload/graph.h"
#include "rushlight/core/message.h"
#include "rushlight/core/status.h"

namespace rushlight::xnnpack {

// The operands of a node, by the numbers that the payload has for them, and its flags.
// DelegateInvalidCompatibility for an unknown kind.
Status read_operands(Node* node, Message& message);

// Whether input `i` of a node may be left out.
bool is_optional(const Node& node, size_t i);
// Whether operand `k` of a node, an input or what comes after them, may be such a value.
bool takes(const Node& node, size_t k, const Value& value);

}  // namespace rushlight::xnnpack
