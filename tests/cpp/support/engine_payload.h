// For tests of the CPU engine: writes payloads (schema/cpu_engine.fbs) whose sizes follow from the
// inputs' sizes, loads and runs them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "check.h"
#include "program_builder.h"
#include "rushlight/backends/cpu/cpu_backend.h"
#include "rushlight/engine/types/cpu_engine_fb.h"

namespace rushlight {
namespace test {

namespace schema = rushlight::fb::cpu_engine;
using schema::ExpressionKind;
using schema::Place;

struct EngineValue {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  Place place = Place::SCRATCH;
  uint32_t index = 0;
  uint64_t offset = 0;
  std::vector<int32_t> dynamic_sizes;
  std::vector<int32_t> dynamic_strides;
  int32_t dynamic_offset = -1;
  DType dtype = DType::Float32;
};

struct EngineExpression {
  ExpressionKind kind;
  int64_t a = 0, b = 0;
};

struct EngineNode {
  schema::Operation kind;
  Table operation;
  std::vector<int32_t> inputs;
  std::vector<int32_t> outputs;
};

struct EngineGraph {
  uint32_t version = 2;
  std::vector<EngineValue> values;
  std::vector<EngineNode> nodes;
  uint32_t n_inputs = 0;
  uint32_t n_outputs = 0;
  uint64_t scratch_size = 0;
  std::vector<EngineExpression> expressions;
  std::vector<int32_t> arguments;

  std::vector<uint8_t> bytes() const {
    std::vector<Table> value_tables, node_tables, expression_tables;
    for (const EngineValue& v : values) {
      Table table;
      table.scalar(0, v.dtype);
      table.ref(1, vector_of(v.sizes)).ref(2, vector_of(v.strides)).scalar(3, v.place);
      table.scalar(4, v.index).scalar(5, v.offset).ref(6, vector_of(v.dynamic_sizes));
      table.ref(7, vector_of(v.dynamic_strides)).scalar(8, v.dynamic_offset);
      value_tables.push_back(table);
    }
    for (const EngineNode& node : nodes) {
      Table table;
      table.choice(0, static_cast<uint8_t>(node.kind), node.operation);
      node_tables.push_back(table.ref(2, vector_of(node.inputs)).ref(3, vector_of(node.outputs)));
    }
    for (const EngineExpression& e : expressions) {
      Table table;
      expression_tables.push_back(table.scalar(0, e.kind).scalar(1, e.a).scalar(2, e.b));
    }
    Table graph;
    graph.scalar(0, version).ref(1, tables_of(value_tables)).ref(3, tables_of(node_tables));
    graph.scalar(4, n_inputs).scalar(5, n_outputs).scalar(6, scratch_size);
    graph.ref(7, tables_of(expression_tables)).ref(8, vector_of(arguments));
    Writer writer;
    writer.put(uint32_t{0});
    writer.bytes.insert(writer.bytes.end(), {'R', 'C', '0', '1'});
    writer.lead(0, *graph.node());
    return writer.bytes;
  }
};

// A float32 tensor with room for `capacity` elements, initially all NaN.
class EngineTensor {
 public:
  EngineTensor(const std::vector<int32_t>& sizes, int64_t capacity)
      : sizes_(sizes), strides_(sizes.size()), order_(sizes.size()) {
    data_.resize(static_cast<size_t>(capacity), kFilling);
    for (size_t d = 0; d < sizes.size(); ++d) order_[d] = static_cast<uint8_t>(d);
    tensor_.data = data_.data();
    tensor_.sizes = sizes_.data();
    tensor_.strides = strides_.data();
    tensor_.dim_order = order_.data();
    tensor_.rank = static_cast<uint8_t>(sizes.size());
    tensor_.capacity = capacity;
    tensor_.dynamism = Dynamism::Bounded;
    (void)count_elements(tensor_.shape(), &tensor_.numel);
    (void)strides_of(tensor_.shape(), tensor_.dim_order, tensor_.strides);
    value_.tag = Tag::Tensor;
    value_.t = &tensor_;
  }
  EngineTensor(const EngineTensor&) = delete;
  EngineTensor& operator=(const EngineTensor&) = delete;

  static constexpr float kFilling = -12345.0f;
  float* data() { return data_.data(); }
  size_t numel() const { return static_cast<size_t>(tensor_.numel); }
  const Tensor& tensor() const { return tensor_; }
  bool has(const std::vector<int32_t>& sizes) const { return sizes_ == sizes; }
  // True if nothing was written after the elements of the current sizes.
  bool rest_untouched() const {
    for (size_t i = numel(); i < data_.size(); ++i) {
      if (data_[i] != kFilling) return false;
    }
    return true;
  }
  EValue* value() { return &value_; }

 private:
  std::vector<int32_t> sizes_, strides_;
  std::vector<uint8_t> order_;
  std::vector<float> data_;
  Tensor tensor_;
  EValue value_;
};

// A delegate in separate memory.
class EngineDelegate {
 public:
  explicit EngineDelegate(const EngineGraph& graph, Workers* workers = nullptr,
                          size_t memory = size_t{1} << 16, const KernelTable* kernels = nullptr,
                          bool check_kernels = false)
      : payload_(graph.bytes()),
        memory_(memory / sizeof(uint64_t)),
        allocator_(memory_.data(), memory),
        workers_(workers) {
    BackendInit init = {};
    init.payload = {payload_.data(), payload_.size()};
    init.allocator = &allocator_;
    init.message = &message_;
    init.place = &place_;
    init.workers = workers;
    init.kernels = kernels;
    init.check_kernels = check_kernels;
    const Result<void*> made = backend_.init(init);
    status_ = made.status();
    if (made.ok()) handle_ = made.value();
  }

  const Status& loaded() const { return status_; }
  const char* message() const { return message_.text(); }
  const char* place() const { return place_.text(); }
  size_t memory_used() const { return allocator_.used(); }
  const std::vector<uint64_t>& memory() const { return memory_; }

  void set_cancelled(const std::atomic<bool>* flag) { cancelled_ = flag; }

  Status run(const std::vector<EValue*>& args, size_t n_inputs, Allocator* scratch = nullptr,
             const KvCache* kv_cache = nullptr) {
    message_.clear();
    BackendRun run = {};
    run.scratch = scratch;
    run.message = &message_;
    run.place = &place_;
    run.n_inputs = n_inputs;
    run.workers = workers_;
    run.kv_cache = kv_cache;
    run.cancelled = cancelled_;
    return backend_.execute(run, handle_, args.data(), args.size());
  }

 private:
  std::vector<uint8_t> payload_;
  std::vector<uint64_t> memory_;
  Allocator allocator_;
  Workers* workers_;
  const std::atomic<bool>* cancelled_ = nullptr;
  CpuBackend backend_;
  Message message_;
  DelegatePlace place_;
  Status status_;
  void* handle_ = nullptr;
};

// Checks that such a graph is refused for that reason.
inline void check_refused(const EngineGraph& graph, const char* reason) {
  const EngineDelegate delegate(graph);
  const bool as_expected = delegate.loaded().code() == Code::DelegateInvalidCompatibility &&
                           std::strstr(delegate.message(), reason) != nullptr;
  if (!as_expected) std::fprintf(stderr, "'%s' has no '%s'\n", delegate.message(), reason);
  CHECK(as_expected);
}

// --- graphs -------------------------------------------------------------------------------------

inline uint32_t tile_word(uint32_t op, uint32_t out, uint32_t a, uint32_t b = 0) {
  return op | out << 8 | a << 16 | b << 24;
}

// x [a, 4] and y [b, 4], with at most `most_x` and `most_y` rows: cat(2 x, y) and the row sums of 2
// x, which is in scratch memory.
inline EngineGraph join_graph(int64_t most_x = 6, int64_t most_y = 5) {
  constexpr uint32_t kLoad = 0, kStore = 1, kMulValue = 54;
  constexpr uint32_t kTwo = 0x40000000;
  Table program;
  program.ref(0, vector_of<uint32_t>({tile_word(kLoad, 0, 0), 0, 0, tile_word(kMulValue, 1, 0), 0,
                                      kTwo, tile_word(kStore, 1, 1), 0, 0}));
  program.ref(1, vector_of<uint32_t>({0, 2}));
  Table twice, sum;
  twice.ref(0, program.node());
  sum.scalar<uint8_t>(0, 0).scalar<uint32_t>(1, 1).scalar<uint32_t>(2, 2);
  EngineGraph graph;
  graph.n_inputs = 2;
  graph.n_outputs = 2;
  graph.scratch_size = static_cast<uint64_t>(most_x) * 16;
  graph.expressions = {{ExpressionKind::INPUT_SIZE, 0, 0},
                       {ExpressionKind::INPUT_SIZE, 1, 0},
                       {ExpressionKind::ADD, 0, 1},
                       {ExpressionKind::CONSTANT, 16, 0},
                       {ExpressionKind::MULTIPLY, 0, 3}};
  const uint64_t behind_x = static_cast<uint64_t>(most_x) * 16;
  graph.values = {{{most_x, 4}, {4, 1}, Place::INPUT, 0, 0, {0, -1}, {}, -1},
                  {{most_y, 4}, {4, 1}, Place::INPUT, 1, 0, {1, -1}, {}, -1},
                  {{most_x, 4}, {4, 1}, Place::SCRATCH, 0, 0, {0, -1}, {}, -1},
                  {{most_x + most_y, 4}, {4, 1}, Place::OUTPUT, 0, 0, {2, -1}, {-1, -1}, -1},
                  {{most_x, 4}, {4, 1}, Place::OUTPUT, 0, 0, {0, -1}, {}, -1},
                  {{most_y, 4}, {4, 1}, Place::OUTPUT, 0, behind_x, {1, -1}, {}, 4},
                  {{most_x}, {1}, Place::OUTPUT, 1, 0, {0}, {}, -1}};
  graph.nodes = {{schema::Operation::Elementwise, twice, {}, {}},
                 {schema::Operation::Copy, {}, {2}, {4}},
                 {schema::Operation::Copy, {}, {1}, {5}},
                 {schema::Operation::Reduction, sum, {2}, {6}}};
  graph.arguments = {0, 1, 3, 6};
  return graph;
}

// Attention of q [1, 1, s, 8], s at most 9, over the first 10 - s of ten keys and values: the fewer
// queries, the more scratch memory is needed.
inline EngineGraph attention_graph() {
  Table attention;
  attention.scalar<float>(0, 0.5f).scalar<uint8_t>(1, 0);
  EngineGraph graph;
  graph.n_inputs = 2;
  graph.n_outputs = 1;
  graph.expressions = {{ExpressionKind::INPUT_SIZE, 0, 2},
                       {ExpressionKind::CONSTANT, -1, 0},
                       {ExpressionKind::MULTIPLY, 0, 1},
                       {ExpressionKind::CONSTANT, 10, 0},
                       {ExpressionKind::ADD, 2, 3}};
  graph.values = {{{1, 1, 10, 8}, {80, 80, 8, 1}, Place::INPUT, 0, 0, {-1, -1, 0, -1}, {}, -1},
                  {{1, 1, 10, 8}, {80, 80, 8, 1}, Place::INPUT, 1, 0, {}, {}, -1},
                  {{1, 1, 0, 8}, {80, 80, 8, 1}, Place::INPUT, 1, 0, {-1, -1, 4, -1}, {}, -1},
                  {{1, 1, 10, 8}, {80, 80, 8, 1}, Place::OUTPUT, 0, 0, {-1, -1, 0, -1}, {}, -1}};
  graph.nodes = {{schema::Operation::Attention, attention, {0, 2, 2}, {3}}};
  graph.arguments = {0, 1, 3};
  return graph;
}

// An RNN of 4 units over x [n, 2, 5] with n at most `most`: [n, 2, 4] and its last state.
inline EngineGraph rnn_graph(int64_t most = 3) {
  Table operation;
  operation.scalar<uint8_t>(0, 2).scalar<uint32_t>(1, 1).scalar<uint8_t>(2, 0);
  operation.scalar<int64_t>(3, 4).scalar<int64_t>(4, 4);
  EngineGraph graph;
  graph.version = 6;
  graph.n_inputs = 2;
  graph.n_outputs = 2;
  graph.expressions = {{ExpressionKind::INPUT_SIZE, 0, 0}};
  graph.values = {{{most, 2, 5}, {10, 5, 1}, Place::INPUT, 0, 0, {0, -1, -1}, {}, -1},
                  {{144}, {1}, Place::INPUT, 1, 0, {}, {}, -1},
                  {{most, 2, 4}, {8, 4, 1}, Place::OUTPUT, 0, 0, {0, -1, -1}, {}, -1},
                  {{1, 2, 4}, {8, 4, 1}, Place::OUTPUT, 1, 0, {}, {}, -1}};
  graph.nodes = {{schema::Operation::Recurrent, operation, {0, 1}, {2, 3}}};
  graph.arguments = {0, 1, 2, 3};
  return graph;
}

// A QuantizedBinary: a and b have zero point 100 and scale 0.5 each, with a range of 3..250.
inline Table sum_of(uint8_t kind = 0, float a_scale = 0.5f, int32_t a_zero_point = 100,
                    float scale = 1) {
  Table requantize, sum;
  requantize.scalar<int32_t>(0, 100).scalar<int32_t>(1, 3).scalar<int32_t>(2, 250);
  sum.scalar<uint8_t>(0, kind).scalar<float>(1, a_scale).scalar<int32_t>(2, a_zero_point);
  sum.scalar<float>(3, 0.5f).scalar<int32_t>(4, 100).scalar<float>(5, scale);
  return sum.ref(6, requantize.node());
}
inline Table residual_of(uint32_t value, const Table& sum) {
  Table residual;
  return residual.scalar<uint32_t>(0, value).ref(1, sum.node());
}

// A graph whose values lie in rows, of which there are any number.
struct RowsGraph : EngineGraph {
 protected:
  // With two dimensions, the first one is dynamic: the number of rows.
  void add(const std::vector<int64_t>& sizes, Place place, uint32_t index, uint64_t offset,
           DType dtype) {
    EngineValue value;
    value.sizes = value.strides = sizes;
    int64_t stride = 1;
    for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) value.strides[d] = stride;
    value.place = place;
    value.index = index;
    value.offset = offset;
    if (sizes.size() == 2) value.dynamic_sizes = {0, -1};
    value.dtype = dtype;
    values.push_back(value);
  }
};

// Products of rows x [s, 40], s at most 9, with weights for 20 columns that are made from the input
// w [1280]. Weights of 8 bits: with uint8 results, with these added to the same product as a
// residual, which they replace, and with float32 results. Rows quantised at run time: with weights
// of 8 bits, and of 4 bits in groups of 8 terms. Float32 rows: with such weights of 8 bits and of
// 4.
struct QuantizedGraph : RowsGraph {
  enum Number { kX, kW, kBytes, kPanels, kStart, kColumns, kRows, kScales, kStatic };
  enum { kNumbers = kStatic + 1, kFloats, kDynamic, kNibbles, kReal8, kReal4 };
  enum { kNibblePanels = kReal4 + 1, kGroupScales };
  enum Node {
    kToBytes,
    kFlip,
    kQuantize,
    kProduct,
    kAddingProduct,
    kToNumbers,
    kFloatProduct,
    kProduct8,
    kProduct4,
    kRealProduct8,
    kRealProduct4
  };

  QuantizedGraph() {
    version = 5;
    n_inputs = 2;
    n_outputs = 6;
    scratch_size = 4096;
    expressions = {{ExpressionKind::INPUT_SIZE, 0, 0}};
    add({9, 40}, Place::INPUT, 0, 0, DType::Float32);
    add({1280}, Place::INPUT, 1, 0, DType::Float32);
    add({1280}, Place::SCRATCH, 0, 0, DType::UInt8);
    add({1280}, Place::SCRATCH, 0, 1280, DType::Int8);
    add({32}, Place::SCRATCH, 0, 0, DType::Int32);
    add({32}, Place::INPUT, 1, 0, DType::Float32);
    add({9, 40}, Place::SCRATCH, 0, 2560, DType::UInt8);
    add({9, 2}, Place::SCRATCH, 0, 2944, DType::Float32);
    add({9, 20}, Place::SCRATCH, 0, 3072, DType::UInt8);
    for (uint32_t i = 0; i < n_outputs; ++i) add({9, 20}, Place::OUTPUT, i, 0, DType::Float32);
    add({640}, Place::SCRATCH, 0, 0, DType::UInt8);
    add({2, 5, 16}, Place::INPUT, 1, 0, DType::Float32);
    Table to_bytes, to_numbers, requantize, product, adding, groups;
    to_bytes.scalar<float>(0, kScale).scalar<int32_t>(1, 128);
    to_numbers.scalar<float>(0, 2).scalar<int32_t>(1, 100);
    requantize.scalar<int32_t>(0, 100).scalar<int32_t>(1, 3).scalar<int32_t>(2, 250);
    product.ref(0, requantize.node());
    adding.ref(0, requantize.node()).ref(2, residual_of(kStatic, sum_of()).node());
    groups.scalar<uint8_t>(0, 4).scalar<int64_t>(1, 8);
    using schema::Operation;
    nodes = {{Operation::Convert, to_bytes, {kW}, {kBytes}},
             {Operation::Convert, {}, {kBytes}, {kPanels}},
             {Operation::QuantizeRows, {}, {kX}, {kRows, kScales}},
             {Operation::QuantizedProduct, product, {kRows, kPanels, kStart, kColumns}, {kStatic}},
             {Operation::QuantizedProduct, adding, {kRows, kPanels, kStart, kColumns}, {kStatic}},
             {Operation::Convert, to_numbers, {kStatic}, {kNumbers}},
             {Operation::QuantizedProduct, {}, {kRows, kPanels, kStart, kColumns}, {kFloats}},
             {Operation::DynamicProduct,
              {},
              {kRows, kScales, kPanels, kColumns, kStart, kColumns},
              {kDynamic}},
             {Operation::DynamicProduct,
              groups,
              {kRows, kScales, kNibblePanels, kGroupScales, kColumns},
              {kNibbles}},
             {Operation::Product, {}, {kX, kPanels, kColumns, kColumns}, {kReal8}},
             {Operation::Product, {}, {kX, kNibblePanels, -1, kGroupScales}, {kReal4}}};
    arguments = {kX, kW, kNumbers, kFloats, kDynamic, kNibbles, kReal8, kReal4};
  }

  static constexpr float kScale = 0.01f;  // of the weights
};

// Rows rounded in groups of 32, and their products with weights of 8 and of 4 bits in such groups,
// which are made of the first numbers of the second input.
struct RowGroupsGraph : RowsGraph {
  enum Number { kX, kW, kBytes, kPanels, kNibbles, kScales, kRows, kRowScales, kSums, kOf8, kOf4 };
  enum Node { kToBytes, kFlip, kQuantize, kProduct8, kProduct4 };
  static constexpr float kScale = 0.01f;  // of the weights

  RowGroupsGraph() {
    version = 8;
    n_inputs = 2;
    n_outputs = 2;
    scratch_size = 8192;
    expressions = {{ExpressionKind::INPUT_SIZE, 0, 0}};
    add({9, 64}, Place::INPUT, 0, 0, DType::Float32);
    add({2048}, Place::INPUT, 1, 0, DType::Float32);
    add({2048}, Place::SCRATCH, 0, 0, DType::UInt8);
    add({2048}, Place::SCRATCH, 0, 2048, DType::Int8);
    add({1024}, Place::SCRATCH, 0, 0, DType::UInt8);
    add({2, 2, 16}, Place::INPUT, 1, 0, DType::Float32);
    add({9, 64}, Place::SCRATCH, 0, 4096, DType::Int8);
    add({9, 2}, Place::SCRATCH, 0, 4672, DType::Float32);
    add({9, 2}, Place::SCRATCH, 0, 4800, DType::Int32);
    for (uint32_t i = 0; i < n_outputs; ++i) add({9, 20}, Place::OUTPUT, i, 0, DType::Float32);
    Table to_bytes;
    to_bytes.scalar<float>(0, kScale).scalar<int32_t>(1, 128);
    using schema::Operation;
    nodes = {{Operation::Convert, to_bytes, {kW}, {kBytes}},
             {Operation::Convert, {}, {kBytes}, {kPanels}},
             {Operation::QuantizeRows, rows_of(32), {kX}, {kRows, kRowScales, kSums}},
             {Operation::DynamicProduct,
              product_of(8, 32, 32),
              {kRows, kRowScales, kSums, kPanels, kScales},
              {kOf8}},
             {Operation::DynamicProduct,
              product_of(4, 32, 32),
              {kRows, kRowScales, kSums, kNibbles, kScales},
              {kOf4}}};
    arguments = {kX, kW, kOf8, kOf4};
  }
  static Table rows_of(int64_t group) {
    Table rows;
    rows.scalar<int64_t>(0, group);
    return rows;
  }
  static Table product_of(uint8_t bits, int64_t group, int64_t row_group) {
    Table product;
    product.scalar<uint8_t>(0, bits).scalar<int64_t>(1, group).scalar<int64_t>(3, row_group);
    return product;
  }
};

}  // namespace test
}  // namespace rushlight
