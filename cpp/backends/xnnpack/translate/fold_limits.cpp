#include "rushlight/backends/xnnpack/translate/fold_limits.h"

#include <algorithm>

#include "rushlight/backends/xnnpack/weights/integer_weights.h"

namespace rushlight::xnnpack {
namespace {

bool takes_limits(const Node& node, const Graph& graph) {
  return node.kind == NodeKind::Add || node.kind == NodeKind::Subtract ||
         node.kind == NodeKind::Multiply || is_static_product(node, graph);
}

}  // namespace

void fold_limits(Graph* graph) {
  for (Node& node : graph->nodes) {
    if (node.kind != NodeKind::Clamp) continue;
    const Value& in = graph->values[node.inputs[0]];
    const Value& out = graph->values[node.outputs[0]];
    if (!is_int8(in) || !is_int8(out) || !same_quantization(in, out)) continue;
    if (in.role != Role::Internal || in.uses != 1 || in.producer == kNone) continue;
    Node& producer = graph->nodes[in.producer];
    if (!takes_limits(producer, *graph)) continue;
    // The limits apply one after the other: their intervals may be disjoint.
    producer.low = std::min(std::max(producer.low, node.low), node.high);
    producer.high = std::min(std::max(producer.high, node.low), node.high);
    node.low = -__builtin_inff();
    node.high = __builtin_inff();
  }
}

}  // namespace rushlight::xnnpack
