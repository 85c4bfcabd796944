#include "rushlight/backends/xnnpack/translate/clusters.h"

#include <new>

#include "rushlight/backends/xnnpack/payload/shapes.h"
#include "rushlight/backends/xnnpack/weights/integer_weights.h"

namespace rushlight::xnnpack {
namespace {

constexpr uint32_t kSeveral = kNone - 1;

bool is_anchor(const Node& node, const Graph& graph) {
  if (is_static_product(node, graph)) return false;
  if (node.kind == NodeKind::Conv2d || node.kind == NodeKind::DepthwiseConv2d ||
      node.kind == NodeKind::ConvTranspose2d) {
    return true;
  }
  if (node.kind != NodeKind::FullyConnected) return false;
  return graph.values[node.inputs[1]].role == Role::Constant &&
         (node.inputs[2] == kNone || graph.values[node.inputs[2]].role == Role::Constant);
}

}  // namespace

bool is_elementwise(NodeKind kind) {
  switch (kind) {
    case NodeKind::Add:
    case NodeKind::Subtract:
    case NodeKind::Multiply:
    case NodeKind::Div:
    case NodeKind::Minimum:
    case NodeKind::Maximum:
    case NodeKind::PReLU:
    case NodeKind::Sigmoid:
    case NodeKind::Clamp:
    case NodeKind::Floor:
    case NodeKind::SquareRoot:
    case NodeKind::Ceiling:
    case NodeKind::Hardswish:
    case NodeKind::LeakyReLU:
    case NodeKind::Negate:
    case NodeKind::Square:
    case NodeKind::ELU:
    case NodeKind::Abs:
    case NodeKind::ReciprocalSquareRoot:
    case NodeKind::Log:
    case NodeKind::Gelu:
    case NodeKind::Tanh:
    case NodeKind::Exp:
    case NodeKind::Sin:
    case NodeKind::Cos:
      return true;
    default:
      return false;
  }
}

bool Clusters::find(const Graph& graph, Span<const Shape> shapes, Allocator* allocator) {
  graph_ = &graph;
  shapes_ = shapes;
  const size_t n = graph.nodes.size();
  Entry* entries = allocator->allocate_array<Entry>(n);
  uint32_t* users = allocator->allocate_array<uint32_t>(graph.values.size());
  if ((entries == nullptr && n > 0) || (users == nullptr && !graph.values.empty())) return false;
  for (size_t i = 0; i < n; ++i) new (entries + i) Entry();
  for (size_t i = 0; i < graph.values.size(); ++i) users[i] = kNone;
  entries_ = {entries, n};
  users_ = {users, graph.values.size()};
  for (uint32_t i = static_cast<uint32_t>(n); i-- > 0;) place(i);
  return true;
}

// Nodes are visited from the last to the first, so users come before producers.
void Clusters::place(uint32_t i) {
  const Node& node = graph_->nodes[i];
  const uint32_t user = users_[node.outputs[0]];
  const bool joins = user < kSeveral && fits(i, user);
  const uint32_t root = joins ? user : i;
  entries_[i].root = root;
  entries_[i].next = joins ? entries_[root].head : kNone;
  entries_[root].head = i;
  const bool anchors = joins && is_anchor(node, *graph_);
  if (anchors) entries_[root].anchor = i;
  const bool passes = is_elementwise(node.kind) || (joins && !anchors);
  for (size_t k = 0; k < node.n_inputs; ++k) {
    if (node.inputs[k] != kNone) use(node.inputs[k], passes ? root : kSeveral);
  }
}

void Clusters::use(uint32_t value, uint32_t root) {
  uint32_t& user = users_[value];
  user = user == kNone || user == root ? root : kSeveral;
}

bool Clusters::fits(uint32_t i, uint32_t root) const {
  const Node& node = graph_->nodes[i];
  const Shape& shape = shapes_[node.outputs[0]];
  const Shape& result = shapes_[graph_->nodes[root].outputs[0]];
  const Value& value = graph_->values[node.outputs[0]];
  // A value that is rounded to integers must be stored.
  if (value.role != Role::Internal || node.n_outputs > 1 || !is_float(value.datatype)) return false;
  if (is_elementwise(node.kind)) return same_shape(shape, result);
  if (entries_[root].anchor != kNone) return false;
  // Reshapes that keep rows may stand between a product and its epilogue.
  if (is_anchor(node, *graph_)) {
    return shape.last() == result.last() && numel_of(shape) == numel_of(result);
  }
  if (node.kind != NodeKind::StaticReshape || !same_shape(shape, result)) return false;
  const Value& input = graph_->values[node.inputs[0]];
  return input.producer != kNone && is_anchor(graph_->nodes[input.producer], *graph_) &&
         shapes_[node.inputs[0]].last() == shape.last();
}

}  // namespace rushlight::xnnpack
