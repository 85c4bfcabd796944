#include "rushlight/backends/cpu/payload.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "rushlight/engine/types/cpu_engine_fb.h"

namespace rushlight::cpu {

using namespace rushlight::engine;

namespace {

namespace schema = fb::cpu_engine;
using schema::Operation;

// More than any operator takes. Tables of a damaged file may share one vector, so the number of
// copies needs a limit.
constexpr size_t kNodeValues = static_cast<size_t>(schema::Limit::NODE_VALUES);
constexpr size_t kKernelArguments = static_cast<size_t>(schema::Limit::KERNEL_ARGUMENTS);
constexpr size_t kKernelText = static_cast<size_t>(schema::Limit::KERNEL_TEXT);
constexpr size_t kWords = 3;  // that an instruction takes

TileInstruction instruction_of(fb::Vector<uint32_t> code, size_t i) {
  TileInstruction instruction = {};
  const uint32_t first = code[i * kWords];
  instruction.op = static_cast<TileOp>(first & 0xff);
  instruction.out = static_cast<uint8_t>(first >> 8);
  instruction.a = static_cast<uint8_t>(first >> 16);
  instruction.b = static_cast<uint8_t>(first >> 24);
  instruction.c = static_cast<uint8_t>(code[i * kWords + 1]);
  const uint32_t bits = code[i * kWords + 2];
  std::memcpy(&instruction.value, &bits, sizeof(bits));
  return instruction;
}

template <size_t n>
bool read_numbers(fb::Vector<int64_t> from, int64_t (&to)[n]) {
  if (from.size() != n) return false;
  for (size_t i = 0; i < n; ++i) to[i] = from[i];
  return true;
}

template <typename Table>
bool read_window(const Table& from, Window* to) {
  return read_numbers(from.kernel(), to->kernel) && read_numbers(from.stride(), to->stride) &&
         read_numbers(from.padding(), to->padding) && read_numbers(from.dilation(), to->dilation);
}

Requantize requantize_of(schema::Requantize from) {
  return {from.zero_point(), from.low(), from.high()};
}

class Reader {
 public:
  explicit Reader(BackendInit& init) : init_(init), message_(*init.message) {}

  Status read(GraphParts* parts);

 private:
  Status read_values(schema::Graph graph, GraphParts* parts);
  Status read_value(schema::Value from, Value* to);
  Status read_expressions(schema::Graph graph, GraphParts* parts);
  Status read_constants(schema::Graph graph, GraphParts* parts);
  Status read_nodes(schema::Graph graph, GraphParts* parts);
  Status read_node(schema::Node from, Node* to);
  Status read_parameters(schema::Node from, Parameters* to);
  Status read_integers(schema::Node from, Parameters* to);
  Status read_program(schema::TileProgram from, TileProgram* to);
  Status read_epilogue(schema::Epilogue from, EpilogueParameters* to);
  template <typename Table>
  Status read_convolution(const Table& from, ConvolutionParameters* to);
  Status read_quantized_convolution(schema::QuantizedConvolution from, Parameters* to);
  template <typename Table>
  Status read_pooling(const Table& from, PoolingParameters* to);
  Status read_quantized_pooling(schema::QuantizedPooling from, Parameters* to);
  Status read_reduction(schema::Reduction from, Parameters* to);
  Status read_quantized_binary(schema::QuantizedBinary from, QuantizedBinaryParameters* to);
  template <typename Table>
  Status read_residual(const Table& from, QuantizedResidualParameters* to);
  Status read_recurrent(schema::Recurrent from, Parameters* to);
  Status read_adapter(schema::Adapter from, Parameters* to);
  Status read_kernel_call(schema::KernelCall from, KernelCallParameters* to);
  Status read_argument(schema::KernelArgument from, KernelArgument* to);

  Status refuse(const char* why) {
    return message_.fail(Code::DelegateInvalidCompatibility, "%s", why);
  }
  // Allocates and constructs `n` objects.
  template <typename T>
  Status allocate(size_t n, Span<T>* span) {
    T* data = init_.allocator->allocate_array<T>(n);
    if (data == nullptr && n > 0) {
      return message_.fail(Code::DelegateMemoryAllocationFailed,
                           "the method's memory has no room for the delegate");
    }
    for (size_t i = 0; i < n; ++i) new (data + i) T();
    *span = {data, n};
    return {};
  }
  template <typename T>
  Status copy(fb::Vector<T> from, Span<const T>* to) {
    Span<T> copied;
    RL_TRY(allocate(from.size(), &copied));
    for (size_t i = 0; i < from.size(); ++i) copied[i] = from[i];
    *to = copied;
    return {};
  }

  Status copy_text(StringView from, StringView* to) {
    Span<char> copied;
    RL_TRY(allocate(from.size(), &copied));
    std::copy_n(from.data(), from.size(), copied.data());
    *to = {copied.data(), copied.size()};
    return {};
  }

  BackendInit& init_;
  Message& message_;
};

Status Reader::read(GraphParts* parts) {
  const uint8_t* data = init_.payload.data();
  if (!schema::verify_Graph(data, init_.payload.size())) {
    return refuse("the payload is cut or damaged; export the model again");
  }
  const schema::Graph graph = schema::root_Graph(data);
  if (graph.version() == 0 || graph.version() > schema::kVersion) {
    return message_.fail(
        Code::DelegateInvalidCompatibility,
        "the payload has version %u, this runtime reads 1 to %u; update the runtime",
        graph.version(), schema::kVersion);
  }
  parts->n_inputs = graph.n_inputs();
  parts->n_outputs = graph.n_outputs();
  parts->scratch_size = graph.scratch_size();
  RL_TRY(read_constants(graph, parts));
  RL_TRY(read_values(graph, parts));
  RL_TRY(read_expressions(graph, parts));
  return read_nodes(graph, parts);
}

Status Reader::read_constants(schema::Graph graph, GraphParts* parts) {
  Span<Constant> constants;
  RL_TRY(allocate(graph.constants().size(), &constants));
  for (size_t i = 0; i < constants.size(); ++i) {
    const schema::Constant constant = graph.constants()[i];
    const StringView key = constant.key();
    const auto bytes = init_.named_data != nullptr ? init_.named_data->get(key)
                                                   : Result<Span<const uint8_t>>(Code::NotFound);
    if (!bytes.ok() || bytes.value().size() < constant.size()) {
      return message_.fail(Code::DelegateInvalidCompatibility,
                           "the file's named data has no %llu bytes under '%.*s'; if weights "
                           "lie in a file beside the program, load it as well",
                           static_cast<unsigned long long>(constant.size()), key.len(), key.data());
    }
    constants[i] = {bytes.value().data(), constant.size()};
  }
  parts->constants = constants;
  return {};
}

Status Reader::read_values(schema::Graph graph, GraphParts* parts) {
  RL_TRY(allocate(graph.values().size(), &parts->values));
  for (size_t i = 0; i < parts->values.size(); ++i) {
    const Status status = read_value(graph.values()[i], &parts->values[i]);
    if (status.ok()) continue;
    message_.prepend("value %zu: ", i);
    return status;
  }
  return {};
}

Status Reader::read_value(schema::Value from, Value* to) {
  const size_t rank = from.sizes().size();
  if (rank > kMaxViewRank || from.strides().size() != rank || from.dynamic_sizes().size() > rank ||
      from.dynamic_strides().size() > rank || from.place() > schema::Place::CONSTANT) {
    return refuse("its rank or place is wrong; export the model again");
  }
  to->view.dtype = static_cast<DType>(from.dtype());
  to->view.rank = static_cast<uint8_t>(rank);
  for (size_t d = 0; d < rank; ++d) {
    to->view.sizes[d] = from.sizes()[d];
    to->view.strides[d] = from.strides()[d];
  }
  to->view.offset = from.offset();
  to->place = static_cast<Place>(from.place());
  to->index = from.index();
  to->dynamic_offset = from.dynamic_offset();
  RL_TRY(copy(from.dynamic_sizes(), &to->dynamic_sizes));
  return copy(from.dynamic_strides(), &to->dynamic_strides);
}

Status Reader::read_expressions(schema::Graph graph, GraphParts* parts) {
  Span<Expression> expressions;
  RL_TRY(allocate(graph.expressions().size(), &expressions));
  for (size_t i = 0; i < expressions.size(); ++i) {
    const schema::Expression from = graph.expressions()[i];
    expressions[i] = {static_cast<ExpressionKind>(from.kind()), from.a(), from.b()};
  }
  parts->expressions = expressions;
  return copy(graph.arguments(), &parts->arguments);
}

Status Reader::read_nodes(schema::Graph graph, GraphParts* parts) {
  Span<Node> nodes;
  RL_TRY(allocate(graph.nodes().size(), &nodes));
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Status status = read_node(graph.nodes()[i], &nodes[i]);
    if (status.ok()) continue;
    init_.place->set(static_cast<int64_t>(i));
    if (status.code() == Code::DelegateInvalidCompatibility) {
      message_.append("; export the model again");
    }
    return status;
  }
  parts->nodes = nodes;
  return {};
}

Status Reader::read_node(schema::Node from, Node* to) {
  if (from.inputs().size() > kNodeValues || from.outputs().size() > kNodeValues) {
    return refuse("it has too many values");
  }
  RL_TRY(copy(from.inputs(), &to->inputs));
  RL_TRY(copy(from.outputs(), &to->outputs));
  return read_parameters(from, &to->parameters);
}

Status Reader::read_parameters(schema::Node from, Parameters* to) {
  switch (from.operation_type()) {
    case Operation::Product:
      return read_epilogue(from.operation_as_Product().epilogue(),
                           &to->emplace<ProductParameters>().epilogue);
    case Operation::BatchProduct:
      *to = BatchProductParameters();
      return {};
    case Operation::Convolution:
      return read_convolution(from.operation_as_Convolution(),
                              &to->emplace<ConvolutionParameters>());
    case Operation::Pooling:
      return read_pooling(from.operation_as_Pooling(), &to->emplace<PoolingParameters>());
    case Operation::Elementwise:
      return read_program(from.operation_as_Elementwise().program(),
                          &to->emplace<ElementwiseParameters>().program);
    case Operation::Norm: {
      const schema::Norm norm = from.operation_as_Norm();
      *to = NormParameters{norm.rms(), norm.epsilon()};
      return {};
    }
    case Operation::GroupNorm: {
      const schema::GroupNorm norm = from.operation_as_GroupNorm();
      *to = GroupNormParameters{norm.groups(), norm.epsilon()};
      return {};
    }
    case Operation::Softmax: {
      const schema::Softmax softmax = from.operation_as_Softmax();
      *to = SoftmaxParameters{softmax.dim(), softmax.log()};
      return {};
    }
    case Operation::Reduction:
      return read_reduction(from.operation_as_Reduction(), to);
    case Operation::Gather:
      *to = GatherParameters{from.operation_as_Gather().columns()};
      return {};
    case Operation::Copy:
      *to = CopyParameters();
      return {};
    case Operation::Attention: {
      const schema::Attention attention = from.operation_as_Attention();
      *to = AttentionParameters{attention.scale(), attention.causal()};
      return {};
    }
    default:
      return read_integers(from, to);
  }
}

Status Reader::read_integers(schema::Node from, Parameters* to) {
  switch (from.operation_type()) {
    case Operation::Convert: {
      const schema::Convert convert = from.operation_as_Convert();
      *to = ConvertParameters{convert.scale(), convert.zero_point()};
      return {};
    }
    case Operation::QuantizeRows:
      to->emplace<QuantizeRowsParameters>().group_size =
          from.operation_as_QuantizeRows().group_size();
      return {};
    case Operation::QuantizedProduct: {
      const schema::QuantizedProduct product = from.operation_as_QuantizedProduct();
      auto& quantized = to->emplace<QuantizedProductParameters>();
      quantized.requantize = requantize_of(product.requantize());
      RL_TRY(read_residual(product, &quantized.residual));
      return read_epilogue(product.epilogue(), &quantized.epilogue);
    }
    case Operation::DynamicProduct: {
      const schema::DynamicProduct product = from.operation_as_DynamicProduct();
      auto& dynamic = to->emplace<DynamicProductParameters>();
      dynamic.bits = product.bits();
      dynamic.group_size = product.group_size();
      dynamic.row_group_size = product.row_group_size();
      return read_epilogue(product.epilogue(), &dynamic.epilogue);
    }
    case Operation::QuantizedConvolution:
      return read_quantized_convolution(from.operation_as_QuantizedConvolution(), to);
    case Operation::QuantizedBinary:
      return read_quantized_binary(from.operation_as_QuantizedBinary(),
                                   &to->emplace<QuantizedBinaryParameters>());
    case Operation::Lookup:
      *to = LookupParameters();
      return {};
    case Operation::QuantizedPooling:
      return read_quantized_pooling(from.operation_as_QuantizedPooling(), to);
    case Operation::Recurrent:
      return read_recurrent(from.operation_as_Recurrent(), to);
    case Operation::CachedAttention: {
      const schema::CachedAttention attention = from.operation_as_CachedAttention();
      *to = CachedAttentionParameters{attention.layer(), attention.scale(), attention.window(),
                                      attention.softcap()};
      return {};
    }
    case Operation::Adapter:
      return read_adapter(from.operation_as_Adapter(), to);
    case Operation::KernelCall:
      return read_kernel_call(from.operation_as_KernelCall(), &to->emplace<KernelCallParameters>());
    default:
      return refuse("its kind is unknown to this runtime; update the runtime");
  }
}

Status Reader::read_program(schema::TileProgram from, TileProgram* to) {
  const size_t n = from.code().size() / kWords;
  if (from.operands().size() > kTileOperands || n > kTileInstructions) {
    return refuse("its program has too many operands or instructions");
  }
  if (from.code().size() % kWords != 0) return refuse("its program is cut");
  Span<TileInstruction> code;
  RL_TRY(allocate(n, &code));
  for (size_t i = 0; i < n; ++i) code[i] = instruction_of(from.code(), i);
  to->code = code;
  return copy(from.operands(), &to->operands);
}

Status Reader::read_epilogue(schema::Epilogue from, EpilogueParameters* to) {
  to->clamped = from.clamped();
  to->low = from.low();
  to->high = from.high();
  if (from.added()) to->residual = from.residual();
  return read_program(from.program(), &to->program);
}

template <typename Table>
Status Reader::read_convolution(const Table& from, ConvolutionParameters* to) {
  if (from.kind() > schema::ConvolutionKind::WINOGRAD) {
    return refuse("it is of an unknown kind");
  }
  to->kind = static_cast<ConvolutionKind>(from.kind());
  if (!read_window(from, &to->window)) return refuse("its window is not valid");
  to->groups = from.groups();
  return read_epilogue(from.epilogue(), &to->epilogue);
}

Status Reader::read_quantized_convolution(schema::QuantizedConvolution from, Parameters* to) {
  auto& convolution = to->emplace<QuantizedConvolutionParameters>();
  convolution.padding_value = from.padding_value();
  convolution.requantize = requantize_of(from.requantize());
  RL_TRY(read_residual(from, &convolution.residual));
  return read_convolution(from, &convolution);
}

template <typename Table>
Status Reader::read_pooling(const Table& from, PoolingParameters* to) {
  if (!read_window(from, &to->window)) return refuse("its window is not valid");
  to->average = from.average();
  to->count_padding = from.count_padding();
  to->divisor = from.divisor();
  return {};
}

Status Reader::read_quantized_pooling(schema::QuantizedPooling from, Parameters* to) {
  auto& pooling = to->emplace<QuantizedPoolingParameters>();
  pooling.in_zero_point = from.in_zero_point();
  pooling.multiplier = from.multiplier();
  pooling.requantize = requantize_of(from.requantize());
  return read_pooling(from, &pooling);
}

Status Reader::read_reduction(schema::Reduction from, Parameters* to) {
  if (from.kind() > schema::ReductionKind::MIN) return refuse("it is of an unknown kind");
  *to = ReductionParameters{static_cast<Reduction>(from.kind()), from.first(), from.last()};
  return {};
}

Status Reader::read_quantized_binary(schema::QuantizedBinary from, QuantizedBinaryParameters* to) {
  if (from.kind() > schema::QuantizedBinaryKind::MULTIPLY) {
    return refuse("it is of an unknown kind");
  }
  *to = QuantizedBinaryParameters{static_cast<QuantizedBinaryKind>(from.kind()),
                                  from.a_scale(),
                                  from.a_zero_point(),
                                  from.b_scale(),
                                  from.b_zero_point(),
                                  from.scale(),
                                  requantize_of(from.requantize())};
  return {};
}

template <typename Table>
Status Reader::read_residual(const Table& from, QuantizedResidualParameters* to) {
  if (!from.has_residual()) return {};
  to->value = from.residual().value();
  return read_quantized_binary(from.residual().sum(), &to->sum);
}

Status Reader::read_recurrent(schema::Recurrent from, Parameters* to) {
  if (from.cell() > schema::RecurrentCell::RNN_RELU) return refuse("it is of an unknown kind");
  *to = RecurrentParameters{static_cast<RecurrentCell>(from.cell()), from.layers(),
                            from.bidirectional(), from.units(), from.outputs()};
  return {};
}

Status Reader::read_adapter(schema::Adapter from, Parameters* to) {
  if (from.sites().size() > kNodeValues || from.widths().size() > kNodeValues) {
    return refuse("it has too many layers");
  }
  auto& adapter = to->emplace<AdapterParameters>();
  adapter.rank = from.rank();
  RL_TRY(copy(from.sites(), &adapter.sites));
  return copy(from.widths(), &adapter.widths);
}

Status Reader::read_kernel_call(schema::KernelCall from, KernelCallParameters* to) {
  const size_t n = from.arguments().size();
  if (n > kKernelArguments || from.name().size() > kKernelText ||
      from.dim_orders().size() > 2 * kNodeValues * kMaxViewRank) {
    return refuse("its kernel has too many arguments, or too long a name");
  }
  RL_TRY(copy_text(from.name(), &to->name));
  RL_TRY(copy(from.dim_orders(), &to->dim_orders));
  Span<KernelArgument> arguments;
  RL_TRY(allocate(n, &arguments));
  for (size_t i = 0; i < n; ++i) RL_TRY(read_argument(from.arguments()[i], &arguments[i]));
  to->arguments = arguments;
  return {};
}

Status Reader::read_argument(schema::KernelArgument from, KernelArgument* to) {
  if (from.kind() > ArgumentKind::FLOATS) return refuse("an argument is of an unknown kind");
  const size_t longest =
      std::max({from.integers().size(), from.expressions().size(), from.floats().size()});
  if (longest > kKernelArguments || from.text().size() > kKernelText) {
    return refuse("an argument of its kernel has too many numbers, or too long a text");
  }
  to->kind = from.kind();
  to->count = from.count();
  RL_TRY(copy(from.integers(), &to->integers));
  RL_TRY(copy(from.expressions(), &to->expressions));
  RL_TRY(copy(from.floats(), &to->floats));
  return copy_text(from.text(), &to->text);
}

}  // namespace

Status read_payload(BackendInit& init, GraphParts* parts) { return Reader(init).read(parts); }

}  // namespace rushlight::cpu
