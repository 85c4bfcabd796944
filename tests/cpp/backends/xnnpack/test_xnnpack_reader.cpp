// The reasons for which payloads of XNNPACK's delegate are refused, and reading of the old and new
// versions of payloads.
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "program_builder.h"
#include "rushlight/backends/xnnpack/payload/graph.h"
#include "rushlight/backends/xnnpack/payload/xnnpack_fb.h"
#include "rushlight/backends/xnnpack/xnnpack_backend.h"
#include "rushlight/kernel/loops/half.h"

namespace {

using namespace rushlight;
using namespace rushlight::test;
using fb::xnnpack::Datatype;
using fb::xnnpack::NodeKind;

constexpr uint32_t kNone = 0xFFFFFFFF;

struct TestValue {
  uint32_t id = 0;
  std::vector<uint32_t> dims = {2, 3};
  uint32_t flags = 0;
  uint32_t external_id = kNone;
  uint32_t constant = 0;
  Datatype datatype = Datatype::FP32;
  int n_dims = -1;  // if it differs from that of dims
};

struct TestNode {
  NodeKind kind = NodeKind::Add;
  Table table;
};

struct TestConstant {
  uint64_t offset = 0;
  uint64_t size = 0;
  const char* key = nullptr;
};

// The bytes of numbers that every floating type can represent.
std::vector<uint8_t> bytes_of(const std::vector<float>& numbers, Datatype datatype) {
  std::vector<uint8_t> bytes;
  for (const float number : numbers) {
    uint32_t bits = kernels::plain::bits_of(number);
    if (datatype == Datatype::FP16) bits = kernels::plain::narrow_half(number).bits;
    if (datatype == Datatype::BF16) bits = kernels::plain::narrow_bfloat(number).bits;
    const size_t size = datatype == Datatype::FP32 ? 4 : 2;
    for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<uint8_t>(bits >> 8 * i));
  }
  return bytes;
}

TestNode unary(NodeKind kind, uint32_t from, uint32_t to) {
  TestNode node;
  node.kind = kind;
  node.table.scalar(0, from).scalar(1, to);
  return node;
}

TestNode binary(NodeKind kind, uint32_t a, uint32_t b, uint32_t to) {
  TestNode node;
  node.kind = kind;
  node.table.scalar(0, a).scalar(1, b).scalar(2, to);
  return node;
}

struct TestGraph {
  std::vector<TestValue> values;
  std::vector<TestNode> nodes;
  std::vector<TestConstant> constants = {{}};
  std::vector<float> inline_constants;
  Datatype datatype = Datatype::FP32;  // of inline constants
  uint32_t n_externs = 4;
  bool has_header = true;
  std::string identifier = "XN01";

  Table table() const {
    std::vector<Table> node_tables, value_tables, constant_tables, buffers = {Table()};
    for (const TestNode& n : nodes) {
      node_tables.push_back(Table().choice(0, static_cast<uint8_t>(n.kind), n.table));
    }
    for (const TestValue& v : values) {
      const auto n_dims = v.n_dims < 0 ? v.dims.size() : static_cast<size_t>(v.n_dims);
      Table tensor;
      tensor.scalar(0, v.datatype).scalar(1, static_cast<uint32_t>(n_dims));
      tensor.ref(2, vector_of(v.dims)).scalar(3, v.constant).scalar(4, v.external_id);
      tensor.scalar(5, v.flags).scalar(6, v.id);
      value_tables.push_back(Table().choice(0, 1, tensor));
    }
    for (const TestConstant& c : constants) {
      Table constant;
      constant.scalar(0, c.offset).scalar(1, c.size);
      if (c.key != nullptr) constant.ref(2, string_of(c.key));
      constant_tables.push_back(constant);
    }
    buffers.push_back(Table().ref(0, vector_of(bytes_of(inline_constants, datatype))));
    Table graph;
    graph.ref(1, tables_of(node_tables)).ref(2, tables_of(value_tables)).scalar(3, n_externs);
    if (!has_header) return graph.ref(6, tables_of(buffers));
    return graph.ref(8, tables_of(constant_tables));
  }

  std::vector<uint8_t> bytes() const {
    Writer writer;
    writer.put(uint32_t{0});
    writer.bytes.insert(writer.bytes.end(), identifier.begin(), identifier.end());
    const Table graph = table();
    writer.lead(0, *graph.node());
    if (!has_header) return writer.bytes;
    std::vector<uint8_t> flatbuffer = writer.bytes;
    flatbuffer.resize((flatbuffer.size() + 15) / 16 * 16);
    std::vector<uint8_t> payload(32);
    const auto put = [&](size_t at, uint64_t number, size_t width) {
      std::memcpy(&payload[at], &number, width);
    };
    std::memcpy(&payload[4], "XH00", 4);
    put(8, 30, 2);
    put(10, 32, 4);
    put(14, flatbuffer.size(), 4);
    put(18, 32 + flatbuffer.size(), 4);
    const std::vector<uint8_t> region = bytes_of(inline_constants, datatype);
    put(22, region.size(), 8);
    payload.insert(payload.end(), flatbuffer.begin(), flatbuffer.end());
    payload.insert(payload.end(), region.begin(), region.end());
    return payload;
  }
};

// y = x0 + x1, both [2, 3].
TestGraph sum() {
  TestGraph graph;
  graph.values = {{7, {2, 3}, 1, 0}, {9, {2, 3}, 1, 1}, {30, {2, 3}, 2, 2}};
  graph.nodes = {binary(NodeKind::Add, 7, 9, 30)};
  return graph;
}

// y = x + constant.
TestGraph with_constant() {
  TestGraph graph = sum();
  graph.values[1] = {9, {2, 3}, 0, kNone, 1};
  graph.values[2].external_id = 1;
  graph.inline_constants = {10, 20, 30, 40, 50, 60};
  graph.constants.push_back({0, 24});
  return graph;
}

struct OneKey : NamedData {
  std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  Result<Span<const uint8_t>> get(StringView key) const override {
    if (key != StringView("weights")) return Code::NotFound;
    return Span<const uint8_t>(reinterpret_cast<const uint8_t*>(numbers.data()),
                               numbers.size() * sizeof(float));
  }
};

struct Loaded {
  std::vector<uint8_t> memory = std::vector<uint8_t>(1 << 20);
  Allocator allocator{memory.data(), memory.size()};
  Message message;
  DelegatePlace place;
  OneKey data;
  std::vector<uint8_t> payload;
  XnnpackBackend backend;
  Result<void*> handle = Code::Internal;

  explicit Loaded(std::vector<uint8_t> bytes) : payload(std::move(bytes)) {
    BackendInit init = {};
    init.payload = {payload.data(), payload.size()};
    init.named_data = &data;
    init.allocator = &allocator;
    init.message = &message;
    init.place = &place;
    handle = backend.init(init);
  }
};

void check_refused(const TestGraph& graph, const char* why,
                   Code code = Code::DelegateInvalidCompatibility) {
  const Loaded loaded(graph.bytes());
  const bool has_reason = std::strstr(loaded.message.text(), why) != nullptr;
  if (!has_reason) std::fprintf(stderr, "'%s' is not '%s'\n", loaded.message.text(), why);
  CHECK(!loaded.handle.ok() && loaded.handle.status().code() == code && has_reason);
}

// Runs with x = 1 2 3 … and, if there is a second input, all twos. Returns the result's bytes.
std::vector<uint8_t> run_as(Loaded& loaded, size_t n_inputs, Datatype datatype) {
  if (!loaded.handle.ok()) std::fprintf(stderr, "%s\n", loaded.message.text());
  CHECK(loaded.handle.ok());
  if (!loaded.handle.ok()) return {};
  std::vector<uint8_t> numbers[3] = {bytes_of({1, 2, 3, 4, 5, 6}, datatype),
                                     bytes_of({2, 2, 2, 2, 2, 2}, datatype),
                                     bytes_of({0, 0, 0, 0, 0, 0}, datatype)};
  std::vector<uint8_t>& out = numbers[n_inputs];
  out = numbers[2];
  int32_t sizes[] = {2, 3};
  int32_t strides[] = {3, 1};
  const uint8_t dim_order[] = {0, 1};
  Tensor tensors[3];
  EValue values[3];
  EValue* args[3];
  for (size_t i = 0; i <= n_inputs; ++i) {
    tensors[i].data = numbers[i].data();
    tensors[i].sizes = sizes;
    tensors[i].strides = strides;
    tensors[i].dim_order = dim_order;
    tensors[i].numel = tensors[i].capacity = 6;
    tensors[i].rank = 2;
    tensors[i].dtype = xnnpack::dtype_of(datatype);
    values[i].tag = Tag::Tensor;
    values[i].t = &tensors[i];
    args[i] = &values[i];
  }
  BackendRun call = {};
  call.message = &loaded.message;
  call.place = &loaded.place;
  const Status status = loaded.backend.execute(call, loaded.handle.value(), args, n_inputs + 1);
  if (!status.ok()) std::fprintf(stderr, "%s\n", loaded.message.text());
  CHECK(status.ok());
  return out;
}

std::vector<float> run(Loaded& loaded, size_t n_inputs) {
  const std::vector<uint8_t> bytes = run_as(loaded, n_inputs, Datatype::FP32);
  std::vector<float> numbers(bytes.size() / sizeof(float));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

void test_forms() {
  for (const char* identifier : {"XN00", "XN01"}) {
    TestGraph graph = sum();
    graph.identifier = identifier;
    Loaded loaded(graph.bytes());
    CHECK((run(loaded, 2) == std::vector<float>{3, 4, 5, 6, 7, 8}));
  }
  for (const bool has_header : {true, false}) {
    TestGraph graph = with_constant();
    graph.has_header = has_header;
    Loaded loaded(graph.bytes());
    CHECK((run(loaded, 1) == std::vector<float>{11, 22, 33, 44, 55, 66}));
  }
  TestGraph named = with_constant();
  named.constants[1] = {UINT64_MAX, 0, "weights"};
  Loaded loaded(named.bytes());
  CHECK((run(loaded, 1) == std::vector<float>{2, 4, 6, 8, 10, 12}));
}

void test_headers() {
  TestGraph graph = sum();
  graph.identifier = "XN02";
  check_refused(graph, "is not one that this runtime reads");
  const std::vector<uint8_t> whole = sum().bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    const Loaded cut({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    CHECK(!cut.handle.ok() && !cut.message.empty());
  }
  for (const size_t at : {8, 12, 16, 20, 29}) {  // the highest byte of each number of the header
    std::vector<uint8_t> payload = whole;
    CHECK(payload.size() > at);
    if (payload.size() <= at) return;
    payload[at] = at == 8 ? 29 : 0x7f;
    const Loaded loaded(payload);
    CHECK(!loaded.handle.ok() && std::strstr(loaded.message.text(), "header") != nullptr);
  }
}

void test_values() {
  TestGraph graph = sum();
  graph.values[1].id = 7;
  check_refused(graph, "two values have the id 7");
  graph = sum();
  graph.values[1].flags = 4;
  check_refused(graph, "value 9: it has flags that are unknown");
  graph = sum();
  graph.values[1].flags = 3;
  check_refused(graph, "it is an input and an output");
  graph = sum();
  graph.values[1].external_id = 4;
  check_refused(graph, "it is argument 4, but the graph has 4");
  graph = sum();
  graph.values[1].external_id = 0;
  check_refused(graph, "another value is argument 0 as well");
  graph = sum();
  graph.n_externs = 65537;
  check_refused(graph, "too many arguments");
  graph = sum();
  graph.values[0].dims = {1, 1, 1, 1, 1, 1, 1};
  check_refused(graph, "dimensions, but at most 6 are allowed");
  graph = sum();
  graph.values[0].dims = {0, 0xFFFFFFFF, 0xFFFFFFFF};
  check_refused(graph, "too many elements");
  graph = sum();
  graph.values[0].n_dims = 3;
  check_refused(graph, "but says that it has");
  graph = sum();
  graph.values[2].dims = {};  // sizes of results in the payload are ignored
  Loaded loaded(graph.bytes());
  CHECK((run(loaded, 2) == std::vector<float>{3, 4, 5, 6, 7, 8}));
}

void test_constants() {
  TestGraph graph = with_constant();
  graph.values[1].constant = 2;
  check_refused(graph, "its constant is not there");
  graph = with_constant();
  graph.constants[1].offset = 8;
  check_refused(graph, "outside of the payload");
  graph = with_constant();
  graph.constants[1].offset = UINT64_MAX - 8;
  check_refused(graph, "outside of the payload");
  graph = with_constant();
  graph.constants[1].size = 20;
  check_refused(graph, "has 20 bytes, its dimensions ask for 24");
  graph = with_constant();
  graph.constants[1].key = "";
  check_refused(graph, "nothing under ''");
  graph = with_constant();
  graph.values[1].flags = 1;
  graph.values[1].external_id = 2;
  check_refused(graph, "an argument and a constant");
}

void test_nodes() {
  TestGraph graph = sum();
  graph.nodes[0] = binary(NodeKind::Add, 7, 8, 30);
  check_refused(graph, "node 0 (Add): it names value 8, which is not there");
  graph = sum();
  graph.values.push_back({8});
  graph.nodes[0] = binary(NodeKind::Add, 7, 8, 30);
  check_refused(graph, "reads value 8, which no node before it has written");
  graph.nodes.push_back(unary(NodeKind::Abs, 30, 8));  // a cycle
  check_refused(graph, "reads value 8, which no node before it has written");
  graph = sum();
  graph.nodes.push_back(unary(NodeKind::Abs, 7, 30));
  check_refused(graph, "node 1 (Abs): it writes value 30");
  graph = sum();
  graph.nodes[0] = binary(NodeKind::Add, 7, 9, 9);
  check_refused(graph, "it writes value 9");
  graph = sum();
  graph.nodes.clear();
  check_refused(graph, "value 30 is an output that no node writes");
  graph = sum();
  graph.nodes[0].kind = static_cast<NodeKind>(48);
  check_refused(graph, "update the runtime");
  graph = sum();
  graph.nodes[0].kind = NodeKind::ScaledDotProductAttention;
  check_refused(graph, "no runtime implements it", Code::NotImplemented);
  graph = sum();
  graph.nodes[0].table.scalar(3, uint32_t{2});
  check_refused(graph, "flags that are unknown");
  graph = sum();
  graph.values[1].dims = {2, 4};
  check_refused(graph, "must broadcast to each other");
}

void test_datatypes() {
  TestGraph graph = sum();
  graph.values[1].datatype = Datatype::QINT8;
  check_refused(graph, "node 0 (Add): its value 9 is qint8", Code::NotSupported);
  check_refused(graph, "with another quantisation, or none", Code::NotSupported);
}

void test_halves() {
  for (const Datatype datatype : {Datatype::FP16, Datatype::BF16}) {
    TestGraph graph = with_constant();
    graph.datatype = datatype;
    graph.constants[1].size = 12;
    for (TestValue& value : graph.values) value.datatype = datatype;
    for (const bool has_header : {true, false}) {
      graph.has_header = has_header;
      Loaded loaded(graph.bytes());
      const std::vector<uint8_t> expected = bytes_of({11, 22, 33, 44, 55, 66}, datatype);
      CHECK(run_as(loaded, 1, datatype) == expected);
    }
    graph.has_header = true;
    graph.constants[1].size = 11;
    check_refused(graph, "has 11 bytes, its dimensions ask for 12");
  }
}

// One input [1, 4, 5, 2], one output, a constant.
TestGraph image(const TestNode& node, std::vector<uint32_t> filter = {3, 1, 2, 2}) {
  TestGraph graph;
  size_t n = 1;
  for (const uint32_t size : filter) n *= size;
  graph.values = {{0, {1, 4, 5, 2}, 1, 0}, {1, filter, 0, kNone, 1}, {2, {}, 2, 1}};
  graph.inline_constants.assign(n, 1);
  graph.constants.push_back({0, n * 4});
  graph.nodes = {node};
  return graph;
}

struct Change {
  unsigned field;
  uint32_t number;
};

TestNode convolution(NodeKind kind, Change change) {
  // padding, kernel, stride, dilation, channels, groups, adjustment, values
  uint32_t fields[] = {0, 0, 0, 0, 1, 2, 1, 1, 1, 1, 2, 3, 1, 0, 0, 0, 1, kNone, 2};
  fields[change.field] = change.number;
  TestNode node;
  node.kind = kind;
  for (unsigned i = 0; i < 19; ++i) node.table.scalar(i, fields[i]);
  return node;
}

void test_convolutions() {
  const auto conv = [](Change change) { return image(convolution(NodeKind::Conv2d, change)); };
  CHECK(Loaded(conv({0, 0}).bytes()).handle.ok());
  check_refused(conv({4, 0}), "window is not valid");
  check_refused(conv({5, 7}), "more than its padded images of sizes");
  check_refused(conv({6, 0}), "window is not valid");
  check_refused(conv({8, 0}), "window is not valid");
  check_refused(conv({0, 1 << 21}), "window is not valid");
  check_refused(conv({9, 0xFFFFFFFF}), "window is not valid");
  check_refused(conv({10, 3}), "which do not fit its");
  check_refused(conv({11, 0xFFFFFFFF}), "its filter has sizes");
  check_refused(conv({12, 0}), "which do not fit its");
  check_refused(conv({12, 0xFFFFFFFF}), "which do not fit its");
  check_refused(conv({17, 1}), "its bias has sizes");
  check_refused(image(convolution(NodeKind::DepthwiseConv2d, {0, 0})), "which do not fit its");
  const auto up = [](Change c) { return image(convolution(NodeKind::ConvTranspose2d, c)); };
  CHECK(Loaded(up({0, 0}).bytes()).handle.ok());
  check_refused(up({13, 1}), "do not fit its window");
  check_refused(up({0, 100}), "do not fit its window");
}

void test_movement() {
  TestNode node;
  node.kind = NodeKind::StaticTranspose;
  node.table.scalar(0, 4).ref(1, vector_of<uint32_t>({0, 1, 2, 2})).scalar(2, 0).scalar(3, 2);
  check_refused(image(node), "must be there once");
  node = TestNode();
  node.kind = NodeKind::StaticReshape;
  node.table.ref(1, vector_of<uint32_t>({0, 7})).scalar(3, 2);
  check_refused(image(node), "they must have as many elements");
  node = TestNode();
  node.kind = NodeKind::StaticReshape;
  node.table.ref(1, vector_of<uint32_t>({0, 0})).scalar(3, 2);
  check_refused(image(node), "but at most one may be");
  node = TestNode();
  node.kind = NodeKind::StaticSlice;
  node.table.ref(1, vector_of<uint32_t>({0, 3, 0, 0})).ref(2, vector_of<uint32_t>({1, 2, 5, 2}));
  node.table.scalar(4, 2);
  check_refused(image(node), "elements from");
  node = TestNode();
  node.kind = NodeKind::StaticConstantPad;
  node.table.ref(0, vector_of<uint32_t>({0, 0, 0, 1u << 31}));
  node.table.ref(1, vector_of<uint32_t>({0, 0, 0, 0})).scalar(4, 2);
  check_refused(image(node), "its paddings of dimension");
  node = TestNode();
  node.kind = NodeKind::StaticResizeBilinear2D;
  node.table.scalar(0, 0xFFFFFFFF).scalar(1, 0xFFFFFFFF).scalar(3, 2);
  check_refused(image(node), "too many elements");
}

}  // namespace

int main() {
  test_forms();
  test_headers();
  test_values();
  test_constants();
  test_nodes();
  test_datatypes();
  test_halves();
  test_convolutions();
  test_movement();
  return check_result();
}
