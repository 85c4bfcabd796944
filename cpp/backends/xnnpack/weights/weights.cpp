#include "rushlight/backends/xnnpack/weights/weights.h"

#include <new>

#include "rushlight/backends/xnnpack/payload/shapes.h"

namespace rushlight::xnnpack {
namespace {

constexpr size_t kAlignment = 64;

bool is_sha256(StringView key) {
  for (size_t i = 0; i < key.size(); ++i) {
    const char c = key.data()[i];
    if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) return false;
  }
  return key.size() == 64;
}

}  // namespace

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

Status Weights::prepare(const Graph& graph, const BackendInit& init, PackedCache* cache) {
  graph_ = &graph;
  cache_ = cache;
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
  const size_t n_nodes = graph.nodes.size();
  IntegerWeights* integers = allocator_->allocate_array<IntegerWeights>(n_nodes);
  if (integers == nullptr && n_nodes > 0) {
    return init.message->fail(Code::DelegateMemoryAllocationFailed,
                              "the method's memory has no room for the delegate");
  }
  for (size_t i = 0; i < n_nodes; ++i) new (integers + i) IntegerWeights();
  integers_ = {integers, n_nodes};
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
  if (!is_float(graph_->values[value].datatype)) {
    float* floats = allocate(numel_of(graph_->values[value].shape));
    if (floats != nullptr) dequantize(graph_->values[value], floats);
    entry.plain = floats;
    return floats;
  }
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

PackedKey Weights::key_of(uint32_t number, Span<const int64_t> how) const {
  const Value& value = graph_->values[number];
  const StringView key = value.key;
  // Keys that exporters make are digests of the bytes, which then need not be read.
  if (!is_sha256(key)) return packed_key(how, value.data);
  return packed_key(how, {reinterpret_cast<const uint8_t*>(key.data()), key.size()});
}

Span<const float> Weights::pack(const Node& node) {
  const Value& value = graph_->values[node.inputs[1]];
  const bool is_layer = node.kind == NodeKind::FullyConnected;
  Filter filter = is_layer ? filter_of_layer(node, value.shape) : filter_of_convolution(node);
  const bool widens_itself = is_layer && is_half(dtype_of(value.datatype));
  if (widens_itself) filter.dtype = dtype_of(value.datatype);
  const bool by_winograd = node.kind == NodeKind::Conv2d && entries_[node.inputs[1]].is_winograd;
  const int64_t floats = node.kind == NodeKind::DepthwiseConv2d   ? depthwise_floats(filter)
                         : node.kind == NodeKind::ConvTranspose2d ? transposed_floats(filter)
                         : by_winograd                            ? winograd_floats(filter)
                                                                  : dense_floats(filter);
  const int64_t how[] = {static_cast<int64_t>(node.kind),
                         static_cast<int64_t>(filter.dtype),
                         by_winograd ? 1 : 0,
                         node.flags & kTransposeWeights,
                         filter.taps,
                         filter.inputs,
                         filter.outputs,
                         filter.groups};
  const bool is_kept = cache_->is_open() && floats > 0 && is_float(value.datatype);
  const PackedKey key = is_kept ? key_of(node.inputs[1], how) : PackedKey();
  if (is_kept) {
    const Span<const float> packed = cache_->find(key, floats, workers_);
    if (packed.data() != nullptr) return packed;
  }
  filter.data = widens_itself ? static_cast<const void*>(value.data.data()) : plain(node.inputs[1]);
  float* to = filter.data != nullptr || floats == 0 ? allocate(floats) : nullptr;
  if (to == nullptr) return {};
  pack_filter(node, filter, to);
  const Span<const float> packed(to, static_cast<size_t>(floats));
  if (is_kept) cache_->add(key, packed);
  return packed;
}

void Weights::pack_filter(const Node& node, const Filter& filter, float* to) {
  if (node.kind == NodeKind::FullyConnected) {
    pack_linear(filter, (node.flags & kTransposeWeights) != 0, to, workers_);
  } else if (node.kind == NodeKind::DepthwiseConv2d) {
    pack_depthwise(filter, to);
  } else if (node.kind == NodeKind::ConvTranspose2d) {
    pack_transposed(filter, to);
  } else if (entries_[node.inputs[1]].is_winograd) {
    pack_winograd(filter, to);
  } else {
    pack_dense(filter, to, workers_);
  }
}

const IntegerWeights* Weights::integers_of(const Node& node) {
  IntegerWeights* weights = &integers_[static_cast<size_t>(&node - graph_->nodes.data())];
  if (!make_weights(node, *graph_, allocator_, weights)) return nullptr;
  const StringView key = graph_->values[node.inputs[1]].key;
  if (named_data_ != nullptr && !key.empty()) named_data_->release(key);
  return weights;
}

Span<const float> Weights::bias_of(const Node& node) {
  Entry& entry = entries_[node.inputs[2]];
  if (entry.bias.data() != nullptr) return entry.bias;
  const Value& value = graph_->values[node.inputs[2]];
  const int64_t outputs = numel_of(value.shape);
  const int64_t floats = bias_floats(outputs);
  const int64_t how[] = {static_cast<int64_t>(value.datatype), outputs};
  const bool is_kept = cache_->is_open() && floats > 0 && is_float(value.datatype);
  const PackedKey key = is_kept ? key_of(node.inputs[2], how) : PackedKey();
  if (is_kept) entry.bias = cache_->find(key, floats, workers_);
  if (entry.bias.data() != nullptr) return entry.bias;
  const float* data = plain(node.inputs[2]);
  float* to = data != nullptr ? allocate(floats) : nullptr;
  if (to == nullptr) return {};
  pack_bias(data, outputs, to);
  entry.bias = {to, static_cast<size_t>(floats)};
  if (is_kept) cache_->add(key, entry.bias);
  return entry.bias;
}

}  // namespace rushlight::xnnpack
