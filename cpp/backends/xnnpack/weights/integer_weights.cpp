#include "rushlight/backends/xnnpack/weights/integer_weights.h"

#include <cstring>
#include <new>

#include "rushlight/backends/xnnpack/payload/shapes.h"
#include "rushlight/backends/xnnpack/weights/pack_integers.h"
#include "rushlight/backends/xnnpack/weights/weights.h"
#include "rushlight/engine/kernels/products/dot_product.h"
#include "rushlight/kernel/loops/half.h"
#include "rushlight/program/flatbuffer.h"

namespace rushlight::xnnpack {
namespace {

constexpr size_t kAlignment = 64;

bool is_integer_bias(const Node& node, const Graph& graph) {
  if (node.inputs[2] == kNone) return true;
  const Datatype datatype = graph.values[node.inputs[2]].datatype;
  return datatype == Datatype::QINT32 || datatype == Datatype::QCINT32;
}

Filter filter_of(const Node& node, const Graph& graph) {
  const Value& value = graph.values[node.inputs[1]];
  Filter filter = node.kind == NodeKind::FullyConnected ? filter_of_layer(node, value.shape)
                                                        : filter_of_convolution(node);
  filter.data = value.data.data();
  return filter;
}

float scale_at(const Quantization& quantization, int64_t i) {
  if (quantization.scales.empty()) return quantization.scale;
  return fb::read<float>(quantization.scales.data() + static_cast<size_t>(i) * sizeof(float));
}

class Maker {
 public:
  Maker(const Node& node, const Graph& graph, Allocator* allocator, IntegerWeights* to)
      : node_(node),
        filter_value_(graph.values[node.inputs[1]]),
        input_(graph.values[node.inputs[0]]),
        output_(graph.values[node.outputs[0]]),
        bias_(node.inputs[2] == kNone ? nullptr : &graph.values[node.inputs[2]]),
        filter_(filter_of(node, graph)),
        allocator_(allocator),
        to_(*to) {}

  bool make(bool is_static) {
    const bool is_nibbles =
        filter_value_.datatype == Datatype::QCINT4 || filter_value_.datatype == Datatype::QBINT4;
    outputs_ = filter_.outputs * filter_.groups;
    columns_ = engine::panels_of(outputs_) * engine::kPanel;
    to_.n_columns = columns_;
    to_.bits = is_nibbles ? 4 : 8;
    sums_ = zeros<int32_t>(columns_);
    if (sums_ == nullptr || !pack(is_nibbles)) return false;
    to_.group_size = filter_value_.quantization.group_size;
    if (to_.group_size > 0) return scale_groups();
    float* scales = zeros<float>(columns_);
    if (scales == nullptr) return false;
    for (int64_t j = 0; j < outputs_; ++j) scales[j] = scale_at(filter_value_.quantization, j);
    if (is_static) start_sums(scales);
    to_.sums = sums_;
    to_.scales = scales;
    return true;
  }

 private:
  template <typename T>
  T* zeros(int64_t n) {
    const size_t bytes = static_cast<size_t>(n > 0 ? n : 1) * sizeof(T);
    void* memory = allocator_->allocate(bytes, kAlignment);
    if (memory != nullptr) std::memset(memory, 0, bytes);
    return static_cast<T*>(memory);
  }

  bool pack(bool is_nibbles) {
    const bool is_depthwise = node_.kind == NodeKind::DepthwiseConv2d;
    const int64_t bytes = is_nibbles     ? nibble_bytes(filter_)
                          : is_depthwise ? depthwise_bytes(filter_)
                                         : dense_bytes(filter_);
    uint8_t* panels = bytes >= 0 ? zeros<uint8_t>(bytes) : nullptr;
    if (panels == nullptr) return false;
    if (is_nibbles) {
      pack_nibbles(filter_, panels, sums_);
    } else if (is_depthwise) {
      pack_depthwise_bytes(filter_, reinterpret_cast<int8_t*>(panels), sums_);
    } else {
      const bool is_transposed =
          node_.kind == NodeKind::FullyConnected && (node_.flags & kTransposeWeights) != 0;
      pack_dense_bytes(filter_, is_transposed, reinterpret_cast<int8_t*>(panels), sums_);
    }
    to_.panels = {panels, static_cast<size_t>(bytes)};
    return true;
  }

  // The start of a sum subtracts the input's zero point. A damaged file's numbers may overflow, so
  // the arithmetic is unsigned.
  void start_sums(float* scales) {
    const auto zero_point = static_cast<uint32_t>(input_.quantization.zero_point + 128);
    for (int64_t j = 0; j < outputs_; ++j) {
      const uint32_t bias =
          bias_ == nullptr ? 0
                           : fb::read<uint32_t>(bias_->data.data() + static_cast<size_t>(j) * 4);
      sums_[j] = static_cast<int32_t>(bias - zero_point * static_cast<uint32_t>(sums_[j]));
      scales[j] = input_.quantization.scale * scales[j] / output_.quantization.scale;
    }
  }

  // [groups, kPanel] for each panel.
  bool scale_groups() {
    const int64_t groups = filter_.inputs / to_.group_size;
    auto* scales = zeros<uint16_t>(columns_ * groups);
    auto* shares = zeros<float>(columns_);
    if (scales == nullptr || shares == nullptr) return false;
    const uint8_t* unaligned = filter_value_.quantization.scales.data();
    for (int64_t j = 0; j < outputs_; ++j) {
      for (int64_t g = 0; g < groups; ++g) {
        const auto bits = fb::read<uint16_t>(unaligned + static_cast<size_t>(j * groups + g) * 2);
        scales[(j / engine::kPanel * groups + g) * engine::kPanel + j % engine::kPanel] = bits;
        int32_t sum = 0;
        for (int64_t k = 0; k < to_.group_size; ++k) {
          sum += nibble_at(filter_, j, g * to_.group_size + k);
        }
        shares[j] += kernels::plain::widen(kernels::plain::BFloat{bits}) * static_cast<float>(sum);
      }
    }
    to_.group_scales = scales;
    to_.n_group_scales = columns_ * groups;
    to_.shares = shares;
    return true;
  }

  const Node& node_;
  const Value& filter_value_;
  const Value& input_;
  const Value& output_;
  const Value* bias_;
  Filter filter_;
  Allocator* allocator_;
  IntegerWeights& to_;
  int64_t outputs_ = 0;
  int64_t columns_ = 0;
  int32_t* sums_ = nullptr;
};

}  // namespace

bool is_static_product(const Node& node, const Graph& graph) {
  if (node.kind != NodeKind::FullyConnected && node.kind != NodeKind::Conv2d &&
      node.kind != NodeKind::DepthwiseConv2d) {
    return false;
  }
  const Value& filter = graph.values[node.inputs[1]];
  const bool has_bytes =
      filter.role == Role::Constant &&
      (filter.datatype == Datatype::QCINT8 || filter.datatype == Datatype::QINT8) &&
      filter.quantization.zero_point == 0;
  if (!has_bytes || !is_int8(graph.values[node.inputs[0]]) ||
      !is_int8(graph.values[node.outputs[0]]) || !is_integer_bias(node, graph)) {
    return false;
  }
  const Filter f = filter_of(node, graph);
  return f.taps * f.inputs <= engine::kMaxQuantizedTerms;
}

bool is_dynamic_product(const Node& node, const Graph& graph) {
  if (node.kind != NodeKind::FullyConnected) return false;
  const Value& filter = graph.values[node.inputs[1]];
  if (graph.values[node.inputs[0]].datatype != Datatype::QDINT8 || filter.role != Role::Constant ||
      is_float(filter.datatype) || filter.quantization.zero_point != 0) {
    return false;
  }
  return filter_of(node, graph).inputs <= engine::kMaxQuantizedTerms &&
         filter.quantization.group_size % 8 == 0;
}

bool make_weights(const Node& node, const Graph& graph, Allocator* allocator, IntegerWeights* to) {
  if (to->is_ready) return true;
  to->is_ready = Maker(node, graph, allocator, to).make(is_static_product(node, graph));
  return to->is_ready;
}

void dequantize(const Value& value, float* to) {
  const Quantization& quantization = value.quantization;
  int64_t inner = 1;  // elements from one index of the channels to the next
  for (size_t d = quantization.channel_dim + 1; d < value.shape.rank; ++d)
    inner *= value.shape.sizes[d];
  const int64_t numel = numel_of(value.shape);
  const int64_t channels =
      quantization.scales.empty() ? 1 : value.shape.sizes[quantization.channel_dim];
  const bool is_wide = value.datatype == Datatype::QINT32 || value.datatype == Datatype::QCINT32;
  Filter nibbles;
  nibbles.data = value.data.data();
  nibbles.inputs = numel;
  const bool is_nibbles = value.datatype == Datatype::QCINT4 || value.datatype == Datatype::QBINT4;
  for (int64_t i = 0; i < numel; ++i) {
    const size_t at = static_cast<size_t>(i);
    const int32_t integer = is_nibbles ? nibble_at(nibbles, 0, i)
                            : is_wide  ? fb::read<int32_t>(value.data.data() + at * 4)
                                       : static_cast<int8_t>(value.data[at]);
    const float number = static_cast<float>(integer - (is_wide ? 0 : quantization.zero_point));
    if (quantization.group_size > 0) {
      const auto bits = fb::read<uint16_t>(quantization.scales.data() +
                                           static_cast<size_t>(i / quantization.group_size) * 2);
      to[i] = number * kernels::plain::widen(kernels::plain::BFloat{bits});
    } else {
      to[i] = number * scale_at(quantization, i / inner % channels);
    }
  }
}

}  // namespace rushlight::xnnpack
