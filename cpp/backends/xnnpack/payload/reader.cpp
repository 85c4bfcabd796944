#include "rushlight/backends/xnnpack/payload/reader.h"

#include <algorithm>
#include <cfloat>
#include <cstdarg>
#include <cstring>
#include <new>

#include "rushlight/backends/xnnpack/payload/reader_nodes.h"
#include "rushlight/engine/types/view.h"
#include "rushlight/kernel/loops/half.h"

namespace rushlight::xnnpack {
namespace {

namespace wire = fb::xnnpack;

constexpr size_t kHeaderSize = 30;
constexpr uint32_t kMaxExternals = static_cast<uint32_t>(fb::cpu_engine::Limit::ARGUMENTS);
constexpr uint32_t kInputFlag = 1;
constexpr uint32_t kOutputFlag = 2;

// A value's id in the payload, and its index here.
struct Named {
  uint32_t id;
  uint32_t index;
};

class Reader {
 public:
  Reader(BackendInit& init, Graph* graph) : init_(init), message_(*init.message), graph_(*graph) {}

  Status read();

 private:
  Status open();
  Status read_values();
  Status read_value(size_t i);
  Status read_tensor(wire::TensorValue from, Value* to);
  Status read_quantization(wire::QuantizedTensorValue from, Value* to);
  template <typename Params>
  Status read_scales(Params params, fb::Vector<float> own, size_t size, Value* to);
  Status read_role(wire::TensorValue from, Value* to);
  Status read_constant(uint32_t index, Value* to);
  Status find_bytes(uint32_t index, Value* to);
  Status sort_ids();
  Status check_arguments();
  Status read_nodes();
  Status read_node(uint32_t number);
  Status resolve(Node* node, uint32_t number);
  Status check_outputs();

  [[gnu::format(printf, 2, 3)]] Status refuse(const char* format, ...) {
    std::va_list args;
    va_start(args, format);
    const Status status = message_.vfail(Code::DelegateInvalidCompatibility, format, args);
    va_end(args);
    return status;
  }
  Status no_memory() {
    return message_.fail(Code::DelegateMemoryAllocationFailed,
                         "the method's memory has no room for the delegate");
  }
  // Allocates and constructs `n` objects.
  template <typename T>
  Status allocate(size_t n, Span<T>* span) {
    T* data = init_.allocator->allocate_array<T>(n);
    if (data == nullptr && n > 0) return no_memory();
    for (size_t i = 0; i < n; ++i) new (data + i) T();
    *span = {data, n};
    return {};
  }
  uint32_t find(uint32_t id) const;

  BackendInit& init_;
  Message& message_;
  Graph& graph_;
  wire::Graph root_;
  bool has_header_ = false;
  Span<const uint8_t> region_;  // of inline constants, if there is a header
  Span<Named> ids_;             // in the order of ids
};

Status Reader::read() {
  RL_TRY(open());
  RL_TRY(read_values());
  RL_TRY(sort_ids());
  RL_TRY(check_arguments());
  RL_TRY(read_nodes());
  return check_outputs();
}

Status Reader::open() {
  const Span<const uint8_t> blob = init_.payload;
  Span<const uint8_t> flatbuffer = blob;
  has_header_ = blob.size() >= kHeaderSize && std::memcmp(blob.data() + 4, "XH00", 4) == 0;
  if (has_header_) {
    const uint8_t* at = blob.data() + 8;
    const auto length = fb::read<uint16_t>(at);
    const uint64_t start = fb::read<uint32_t>(at + 2);
    const uint64_t size = fb::read<uint32_t>(at + 6);
    const uint64_t constants = fb::read<uint32_t>(at + 10);
    const uint64_t constants_size = fb::read<uint64_t>(at + 14);
    if (length < kHeaderSize || start > blob.size() || size > blob.size() - start ||
        constants > blob.size() || constants_size > blob.size() - constants) {
      return refuse("the header of the payload is cut or damaged; export the model again");
    }
    flatbuffer = {blob.data() + start, static_cast<size_t>(size)};
    region_ = {blob.data() + constants, static_cast<size_t>(constants_size)};
  }
  const uint8_t* data = flatbuffer.data();
  if (!fb::has_identifier(data, flatbuffer.size(), "XN00") &&
      !fb::has_identifier(data, flatbuffer.size(), "XN01")) {
    return refuse("the payload's version is not one that this runtime reads (XN00 and XN01)");
  }
  if (!wire::verify_Graph(data, flatbuffer.size())) {
    return refuse("the payload is cut or damaged; export the model again");
  }
  root_ = wire::root_Graph(data);
  if (root_.num_externs() > kMaxExternals) return refuse("the graph has too many arguments");
  return {};
}

Status Reader::read_values() {
  RL_TRY(allocate(root_.xvalues().size(), &graph_.values));
  for (size_t i = 0; i < graph_.values.size(); ++i) {
    const Status status = read_value(i);
    if (status.ok()) continue;
    message_.prepend("value %u: ", graph_.values[i].id);
    return status;
  }
  return {};
}

Status Reader::read_value(size_t i) {
  const wire::Value from = root_.xvalues()[i];
  Value* to = &graph_.values[i];
  wire::TensorValue tensor = from.xvalue_union_as_TensorValue();
  if (from.xvalue_union_type() == wire::ValueKind::QuantizedTensorValue) {
    tensor = from.xvalue_union_as_QuantizedTensorValue().tensor_value();
  }
  if (!tensor.present()) return refuse("it is not a tensor");
  to->id = tensor.id_out();
  RL_TRY(read_tensor(tensor, to));
  if (from.xvalue_union_type() != wire::ValueKind::QuantizedTensorValue) return {};
  return read_quantization(from.xvalue_union_as_QuantizedTensorValue(), to);
}

bool is_scale(float scale) { return scale >= FLT_MIN && scale <= FLT_MAX; }

Status Reader::read_quantization(wire::QuantizedTensorValue from, Value* to) {
  Quantization& quantization = to->quantization;
  if (from.quant_params_type() == wire::QuantParams::PerTensorQuant) {
    const auto params = from.quant_params_as_PerTensorQuant();
    quantization.scale = params.scale();
    quantization.zero_point = params.zero_point();
    if (!is_scale(params.scale())) return refuse("its scale is not a positive number");
    if (quantization.zero_point < -128 || quantization.zero_point > 127) {
      return refuse("its zero point is not within -128..127");
    }
  }
  if (from.quant_params_type() == wire::QuantParams::PerTokenDynamicQuant) {
    quantization.row_dims = from.quant_params_as_PerTokenDynamicQuant().num_nonbatch_dims();
  }
  if (from.quant_params_type() == wire::QuantParams::PerChannelQuant) {
    const auto params = from.quant_params_as_PerChannelQuant();
    return read_scales(params, params.scale(), sizeof(float), to);
  }
  if (from.quant_params_type() == wire::QuantParams::PerChannelGroupQuant) {
    const auto params = from.quant_params_as_PerChannelGroupQuant();
    quantization.group_size = params.group_size();
    if (params.scale_buffer_idx() == 0) {
      return message_.fail(Code::NotSupported, "the scales of its groups are not constant");
    }
    if (quantization.group_size < 1) return refuse("its groups have no size");
    return read_scales(params, params.scale(), sizeof(uint16_t), to);
  }
  return {};
}

// One scale for each index of a dimension, or for each group of its elements.
template <typename Params>
Status Reader::read_scales(Params params, fb::Vector<float> own, size_t size, Value* to) {
  Quantization& quantization = to->quantization;
  const int64_t dim = params.channel_dim();
  if (dim < 0 || static_cast<size_t>(dim) >= to->shape.rank) {
    return refuse("its scales belong to a dimension that it does not have");
  }
  quantization.channel_dim = static_cast<size_t>(dim);
  Value scales;
  size_t n = params.num_scales();
  if (params.scale_buffer_idx() != 0) {
    RL_TRY(find_bytes(params.scale_buffer_idx(), &scales));
  } else {
    n = own.size();
    if (n > 0) scales.data = {own.bytes(), n * sizeof(float)};
  }
  int64_t wanted = to->shape.sizes[dim];
  if (quantization.group_size > 0 && wanted > 0) {
    int64_t numel = 1;
    for (size_t d = 0; d < to->shape.rank; ++d) numel *= to->shape.sizes[d];
    const int64_t row = numel / wanted;
    if (row % quantization.group_size != 0) {
      return refuse("its rows have %lld elements, which groups of %lld do not divide",
                    static_cast<long long>(row), static_cast<long long>(quantization.group_size));
    }
    wanted *= row / quantization.group_size;
  }
  if (n != static_cast<size_t>(wanted) || n > scales.data.size() / size) {
    return refuse("it has %zu scales, but must have %lld", n, static_cast<long long>(wanted));
  }
  quantization.scales = {scales.data.data(), n * size};
  for (size_t i = 0; i < n; ++i) {
    const uint8_t* at = quantization.scales.data() + i * size;
    const uint32_t bits =
        size == 2 ? uint32_t{fb::read<uint16_t>(at)} << 16 : fb::read<uint32_t>(at);
    if (!is_scale(kernels::plain::float_of(bits)))
      return refuse("a scale is not a positive number");
  }
  return {};
}

Status Reader::read_tensor(wire::TensorValue from, Value* to) {
  to->datatype = from.datatype();
  if (from.dq_datatype() != Datatype::INVALID) to->datatype = Datatype::QDINT8;
  const size_t rank = from.dims().size();
  if (rank > kMaxRank) {
    return refuse("it has %zu dimensions, but at most %zu are allowed", rank, size_t{kMaxRank});
  }
  if (from.num_dims() != rank) {
    return refuse("it has %zu sizes, but says that it has %u dimensions", rank,
                  unsigned{from.num_dims()});
  }
  to->shape.rank = rank;
  int64_t numel = 1;
  for (size_t d = 0; d < rank; ++d) {
    to->shape.sizes[d] = from.dims()[d];
    // The sizes that are not 0 must not overflow either.
    numel = engine::bounded_product({numel, to->shape.sizes[d] > 0 ? to->shape.sizes[d] : 1});
    if (numel < 0) return refuse("it has too many elements");
  }
  return read_role(from, to);
}

// Bits of an element of a constant; 0 if constants cannot have this type.
uint64_t bits_of(Datatype datatype) {
  switch (datatype) {
    case Datatype::FP32:
    case Datatype::QINT32:
    case Datatype::QCINT32:
      return 32;
    case Datatype::FP16:
    case Datatype::BF16:
      return 16;
    case Datatype::QINT8:
    case Datatype::QCINT8:
      return 8;
    case Datatype::QCINT4:
    case Datatype::QBINT4:
      return 4;
    default:
      return 0;
  }
}

Status Reader::read_role(wire::TensorValue from, Value* to) {
  const uint32_t flags = from.flags();
  if ((flags & ~(kInputFlag | kOutputFlag)) != 0) return refuse("it has flags that are unknown");
  if (flags == (kInputFlag | kOutputFlag)) return refuse("it is an input and an output");
  if (flags != 0) {
    if (from.constant_buffer_idx() != 0) return refuse("it is an argument and a constant");
    if (from.external_id() >= root_.num_externs()) {
      return refuse("it is argument %u, but the graph has %u", unsigned{from.external_id()},
                    unsigned{root_.num_externs()});
    }
    to->role = flags == kInputFlag ? Role::Input : Role::Output;
    to->argument = from.external_id();
    return {};
  }
  if (from.constant_buffer_idx() == 0) return {};
  to->role = Role::Constant;
  return read_constant(from.constant_buffer_idx(), to);
}

Status Reader::read_constant(uint32_t index, Value* to) {
  RL_TRY(find_bytes(index, to));
  uint64_t bits = bits_of(to->datatype);
  if (bits == 0) return {};  // no node accepts it
  for (size_t d = 0; d < to->shape.rank; ++d) {
    bits *= static_cast<uint64_t>(to->shape.sizes[d]);
  }
  const uint64_t bytes = (bits + 7) / 8;
  if (to->data.size() < bytes) {
    return message_.fail(Code::DelegateInvalidCompatibility,
                         "its constant has %zu bytes, its dimensions ask for %llu", to->data.size(),
                         static_cast<unsigned long long>(bytes));
  }
  to->data = {to->data.data(), static_cast<size_t>(bytes)};
  return {};
}

Status Reader::find_bytes(uint32_t index, Value* to) {
  if (!has_header_) {
    if (index >= root_.constant_buffer().size()) return refuse("its constant is not there");
    to->data = fb::as_span(root_.constant_buffer()[index].storage());
    return {};
  }
  if (index >= root_.constant_data().size()) return refuse("its constant is not there");
  const wire::ConstantDataOffset place = root_.constant_data()[index];
  if (!place.has_named_key()) {
    if (place.offset() > region_.size() || place.size() > region_.size() - place.offset()) {
      return refuse("its constant lies outside of the payload");
    }
    to->data = {region_.data() + place.offset(), static_cast<size_t>(place.size())};
    return {};
  }
  const StringView key = place.named_key();
  const auto named = init_.named_data != nullptr ? init_.named_data->get(key)
                                                 : Result<Span<const uint8_t>>(Code::NotFound);
  if (!named.ok()) {
    return message_.fail(Code::DelegateInvalidCompatibility,
                         "the file's named data has nothing under '%.*s'; if weights lie in a file "
                         "beside the program, load it as well",
                         key.len(), key.data());
  }
  to->data = named.value();
  to->key = key;
  return {};
}

Status Reader::sort_ids() {
  RL_TRY(allocate(graph_.values.size(), &ids_));
  for (uint32_t i = 0; i < ids_.size(); ++i) ids_[i] = {graph_.values[i].id, i};
  std::sort(ids_.begin(), ids_.end(), [](Named a, Named b) { return a.id < b.id; });
  for (size_t i = 1; i < ids_.size(); ++i) {
    if (ids_[i - 1].id != ids_[i].id) continue;
    return message_.fail(Code::DelegateInvalidCompatibility, "two values have the id %u",
                         ids_[i].id);
  }
  return {};
}

uint32_t Reader::find(uint32_t id) const {
  const Named* named = std::lower_bound(
      ids_.begin(), ids_.end(), id, [](Named named, uint32_t wanted) { return named.id < wanted; });
  return named != ids_.end() && named->id == id ? named->index : kNone;
}

Status Reader::check_arguments() {
  Span<bool> taken;
  RL_TRY(allocate(root_.num_externs(), &taken));
  for (const Value& value : graph_.values) {
    if (value.role != Role::Input && value.role != Role::Output) continue;
    if (taken[value.argument]) {
      return message_.fail(Code::DelegateInvalidCompatibility,
                           "value %u: another value is argument %u as well", value.id,
                           value.argument);
    }
    taken[value.argument] = true;
    graph_.n_arguments = std::max<size_t>(graph_.n_arguments, value.argument + size_t{1});
  }
  return {};
}

Status Reader::read_nodes() {
  RL_TRY(allocate(root_.xnodes().size(), &graph_.nodes));
  for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
    const Status status = read_node(i);
    if (status.ok()) continue;
    init_.place->set(static_cast<int64_t>(i));
    message_.prepend("node %u (%s): ", i, name_of(graph_.nodes[i].kind));
    return status;
  }
  return {};
}

Status Reader::read_node(uint32_t number) {
  Node* node = &graph_.nodes[number];
  node->body = Body(root_.xnodes()[number]);
  node->kind = node->body.xnode_union_type();
  if (node->body.has_output_min_max()) {
    const wire::OutputMinMax limits = node->body.output_min_max();
    node->low = limits.output_min();
    node->high = limits.output_max();
    if (!(node->low <= node->high)) {
      return refuse("its limits are %g and %g, but the first must not be the greater one",
                    double{node->low}, double{node->high});
    }
  }
  RL_TRY(read_operands(node, message_));
  return resolve(node, number);
}

// Replaces the payload's ids by indices.
Status Reader::resolve(Node* node, uint32_t number) {
  const size_t n = size_t{node->n_inputs} + node->n_outputs;
  for (size_t k = 0; k < n; ++k) {
    const bool is_input = k < node->n_inputs;
    uint32_t* id = is_input ? &node->inputs[k] : &node->outputs[k - node->n_inputs];
    if (is_input && *id == kNone && is_optional(*node, k)) continue;
    const uint32_t index = find(*id);
    if (index == kNone) {
      return message_.fail(Code::DelegateInvalidCompatibility,
                           "it names value %u, which is not there", *id);
    }
    *id = index;
    Value& value = graph_.values[index];
    if (!takes(*node, k, value)) {
      return message_.fail(Code::NotSupported,
                           "its value %u is %s, which this runtime does not take there: export the "
                           "model with another quantisation, or none",
                           value.id, name_of(value.datatype));
    }
    if (is_input) {
      ++value.uses;
      if (value.producer != kNone || value.role == Role::Input || value.role == Role::Constant) {
        continue;
      }
      return message_.fail(Code::DelegateInvalidCompatibility,
                           "it reads value %u, which no node before it has written", value.id);
    }
    if (value.role == Role::Input || value.role == Role::Constant || value.producer != kNone) {
      return message_.fail(Code::DelegateInvalidCompatibility,
                           "it writes value %u, which is an input, a constant or the result of "
                           "another node",
                           value.id);
    }
    value.producer = number;
  }
  return {};
}

Status Reader::check_outputs() {
  for (const Value& value : graph_.values) {
    if (value.role != Role::Output || value.producer != kNone) continue;
    return message_.fail(Code::DelegateInvalidCompatibility,
                         "value %u is an output that no node writes", value.id);
  }
  return {};
}

}  // namespace

Status read_graph(BackendInit& init, Graph* graph) { return Reader(init, graph).read(); }

}  // namespace rushlight::xnnpack
