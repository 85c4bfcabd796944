#include "rushlight/backends/xnnpack/weights.h"

#include <new>

#include "rushlight/backends/xnnpack/pack.h"
#include "rushlight/backends/xnnpack/shapes.h"

namespace rushlight::xnnpack {
namespace {

constexpr size_t kAlignment = 64;

Filter filter_of_convolution(const Node& node) {
  const auto table = node.body.as<fb::xnnpack::Convolution>();
  Filter filter;
  filter.taps = int64_t{table.kernel_height()} * table.kernel_width();
  filter.inputs = table.group_input_channels();
  filter.outputs = table.group_output_channels();
  filter.groups = table.groups();
  return filter;
}

Filter filter_of_layer(const Node& node, const Shape& shape) {
  const bool is_transposed = (node.flags & kTransposeWeights) != 0;
  Filter filter;
  filter.inputs = shape.sizes[is_transposed ? 0 : 1];
  filter.outputs = shape.sizes[is_transposed ? 1 : 0];
  return filter;
}

}  // namespace

Status Weights::prepare(const Graph& graph, const BackendInit& init) {
  graph_ = &graph;
  allocator_ = init.allocator;
  named_data_ = init.named_data;
  workers_ = init.workers;
  const size_t n = graph.values.size();
  Entry* entries = allocator_->allocate_array<Entry>(n);
  if (entries == nullptr && n > 0) {
    return init.message->fail(Code::DelegateMemoryAllocationFailed,
                              "the method's memory has no room for the delegate");
  }
  for (size_t i = 0; i < n; ++i) new (entries + i) Entry();
  entries_ = {entries, n};
  return {};
}

float* Weights::allocate(int64_t floats) {
  if (floats < 0 || static_cast<uint64_t>(floats) > SIZE_MAX / sizeof(float)) return nullptr;
  // An address that can be compared with nullptr even if there are none.
  const size_t bytes = static_cast<size_t>(floats > 0 ? floats : 1) * sizeof(float);
  return static_cast<float*>(allocator_->allocate(bytes, kAlignment));
}

const float* Weights::plain(uint32_t value) {
  Entry& entry = entries_[value];
  if (entry.plain != nullptr) return entry.plain;
  const Span<const uint8_t> data = graph_->values[value].data;
  const DType dtype = dtype_of(graph_->values[value].datatype);
  const bool is_float32 = dtype == DType::Float32;
  if (is_float32 && !data.empty() &&
      reinterpret_cast<uintptr_t>(data.data()) % alignof(int64_t) == 0) {
    entry.plain = reinterpret_cast<const float*>(data.data());
    return entry.plain;
  }
  const auto n = static_cast<int64_t>(data.size() / element_size(dtype));
  float* copy = allocate(n);
  if (copy != nullptr && n > 0) widen(data.data(), dtype, n, copy);
  entry.plain = copy;
  return copy;
}

Span<const float> Weights::filter_of(const Node& node) {
  Entry& entry = entries_[node.inputs[1]];
  if (entry.packed_for != node.kind || entry.packed_flags != node.flags) {
    entry.packed = pack(node);
    entry.packed_for = node.kind;
    entry.packed_flags = node.flags;
    const StringView key = graph_->values[node.inputs[1]].key;
    if (named_data_ != nullptr && !key.empty()) named_data_->release(key);
  }
  return entry.packed;
}

bool Weights::is_winograd(const Node& node, bool suits) {
  Entry& entry = entries_[node.inputs[1]];
  if (entry.packed.data() == nullptr) entry.is_winograd = suits;
  return entry.is_winograd;
}

Span<const float> Weights::pack(const Node& node) {
  const Value& value = graph_->values[node.inputs[1]];
  const bool is_layer = node.kind == NodeKind::FullyConnected;
  Filter filter = is_layer ? filter_of_layer(node, value.shape) : filter_of_convolution(node);
  if (is_layer && value.datatype != Datatype::FP32) {
    filter.dtype = dtype_of(value.datatype);
    filter.data = value.data.data();
  } else {
    filter.data = plain(node.inputs[1]);
    if (filter.data == nullptr) return {};
  }
  const bool is_depthwise = node.kind == NodeKind::DepthwiseConv2d;
  const bool is_transposed = node.kind == NodeKind::ConvTranspose2d;
  const bool by_winograd = node.kind == NodeKind::Conv2d && entries_[node.inputs[1]].is_winograd;
  const int64_t floats = is_depthwise    ? depthwise_floats(filter)
                         : is_transposed ? transposed_floats(filter)
                         : by_winograd   ? winograd_floats(filter)
                                         : dense_floats(filter);
  float* to = allocate(floats);
  if (to == nullptr) return {};
  if (is_layer) {
    pack_linear(filter, (node.flags & kTransposeWeights) != 0, to, workers_);
  } else if (is_depthwise) {
    pack_depthwise(filter, to);
  } else if (is_transposed) {
    pack_transposed(filter, to);
  } else if (by_winograd) {
    pack_winograd(filter, to);
  } else {
    pack_dense(filter, to, workers_);
  }
  return {to, static_cast<size_t>(floats)};
}

Span<const float> Weights::bias_of(const Node& node) {
  Entry& entry = entries_[node.inputs[2]];
  if (entry.bias.data() != nullptr) return entry.bias;
  const int64_t outputs = numel_of(graph_->values[node.inputs[2]].shape);
  const float* data = plain(node.inputs[2]);
  float* to = data != nullptr ? allocate(bias_floats(outputs)) : nullptr;
  if (to == nullptr) return {};
  pack_bias(data, outputs, to);
  entry.bias = {to, static_cast<size_t>(bias_floats(outputs))};
  return entry.bias;
}

}  // namespace rushlight::xnnpack
