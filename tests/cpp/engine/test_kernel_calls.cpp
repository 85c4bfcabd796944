// Calls of the user's own kernels between operators of the engine: results, sizes that change, and
// what is refused at load and in a run.
#include "engine_kernels.h"

using namespace rushlight;
using namespace rushlight::test;
using Kind = rushlight::test::schema::ArgumentKind;

namespace {

// The message of a graph that is refused with `code`, or of one that loads.
bool is_refused(const EngineGraph& graph, const KernelTable* kernels, Code code, const char* why) {
  const EngineDelegate delegate(graph, nullptr, size_t{1} << 16, kernels);
  const bool as_expected =
      delegate.loaded().code() == code && std::strstr(delegate.message(), why) != nullptr;
  if (!as_expected) std::fprintf(stderr, "'%s' has no '%s'\n", delegate.message(), why);
  return as_expected;
}

struct Run {
  explicit Run(int32_t rows) : x({rows, 4}, rows * 4), out({6, 4}, 24), total({1}, 1) {
    for (size_t i = 0; i < x.numel(); ++i) x.data()[i] = static_cast<float>(i) - 5;
  }
  std::vector<EValue*> args() { return {x.value(), out.value(), total.value()}; }
  bool is_right(int32_t rows) {
    bool right = out.has({rows, 4}) && total.data()[0] == static_cast<float>(rows);
    for (size_t i = 0; i < x.numel(); ++i) {
      const float wanted = 4 * x.data()[i] + 3 + 2 * static_cast<float>(rows);
      right = right && out.data()[i] == wanted;
    }
    return right && out.rest_untouched();
  }

  EngineTensor x, out, total;
};

void test_sizes() {
  const MixTable kernels;
  EngineDelegate delegate(KernelGraph(), nullptr, size_t{1} << 16, kernels.table());
  CHECK(delegate.loaded().ok());
  std::vector<uint8_t> memory(256);
  Allocator scratch(memory.data(), memory.size());
  for (const int32_t rows : {6, 1, 4, 0, 6}) {
    Run run(rows);
    scratch.reset();
    CHECK(delegate.run(run.args(), 1, &scratch).ok());
    CHECK(run.is_right(rows));
    CHECK(scratch.used() >= static_cast<size_t>(rows) * 16);
  }
  Run run(6);
  CHECK(delegate.run(run.args(), 1).code() == Code::MemoryAllocationFailed);
  CHECK(std::strstr(delegate.message(), "acme::mix.out: no scratch") != nullptr);
  CHECK(std::strcmp(delegate.place(), "1") == 0);
}

// Two calls in a run take the same scratch memory one after the other.
void test_scratch_is_shared() {
  const MixTable kernels;
  KernelGraph graph;
  graph.nodes.insert(graph.nodes.begin() + 1, graph.nodes[1]);
  EngineDelegate delegate(graph, nullptr, size_t{1} << 16, kernels.table());
  alignas(64) uint8_t memory[96];
  Allocator scratch(memory, sizeof(memory));
  Run run(6);
  CHECK(delegate.run(run.args(), 1, &scratch).ok() && run.is_right(6));
  CHECK(scratch.used() == sizeof(memory));
}

void test_kernels_that_do_not_fit() {
  const KernelGraph graph;
  const KernelTable none;
  for (const KernelTable* table : {&none, static_cast<const KernelTable*>(nullptr)}) {
    CHECK(is_refused(graph, table, Code::OperatorMissing, "no kernel for acme::mix.out"));
  }
  KernelGraph two;
  two.name = "acme::other.out";
  two.make_nodes();
  two.nodes.push_back(KernelGraph().nodes[1]);
  CHECK(is_refused(two, &none, Code::OperatorMissing,
                   "no kernel for acme::other.out, acme::mix.out"));
  const MixTable outside(mix, "t?tIdiTSww=", false);
  CHECK(is_refused(graph, outside.table(), Code::NotSupported,
                   "the kernel of acme::mix.out does not say that it may be called inside"));
  const MixTable fewer(mix, "t?tIdiTSw=");
  CHECK(is_refused(graph, fewer.table(), Code::InvalidProgram,
                   "acme::mix.out: 10 arguments, but the operator takes 9"));
  const MixTable other(mix, "t?tDdiTSww=");
  CHECK(is_refused(graph, other.table(), Code::InvalidProgram,
                   "acme::mix.out: argument 2 is IntList, but the operator takes a DoubleList"));
  const Kernel own = {kMix, "t?tIdiTSww=", mix};
  KernelTable runtimes;
  CHECK(runtimes.add({&own, 1}).ok());
  CHECK(is_refused(graph, &runtimes, Code::NotSupported, "inside a delegate"));
}

void test_payloads_that_do_not_fit() {
  const MixTable kernels;
  const auto refused = [&](const KernelGraph& graph, const char* why) {
    return is_refused(graph, kernels.table(), Code::DelegateInvalidCompatibility, why);
  };
  const auto changed = [](const auto& change) {
    KernelGraph graph;
    change(graph);
    graph.make_nodes();
    return graph;
  };
  for (const std::vector<uint8_t>& orders :
       {std::vector<uint8_t>{0, 1, 0, 1}, {0, 1, 0, 0, 0, 1, 0, 1, 0}, {}}) {
    CHECK(refused(changed([&](KernelGraph& g) { g.dim_orders = orders; }), "the dim orders of"));
  }
  CHECK(refused(changed([](KernelGraph& g) { g.dim_orders = {0, 1, 0, 1, 0, 1, 1, 0, 0}; }),
                "are not those of a dense tensor in its dim order"));
  CHECK(refused(
      changed([](KernelGraph& g) { g.kernel_arguments[5] = argument_of(Kind::TENSORS, 1); }),
      "its kernel takes 2 inputs and 2 outputs, and it has 3 and 2"));
  CHECK(refused(
      changed([](KernelGraph& g) { g.kernel_arguments[5] = argument_of(Kind::TENSORS, 9); }),
      "does not have what it is made of"));
  for (const Kind kind : {Kind::INTEGER, Kind::BOOLEAN, Kind::FLOAT}) {
    CHECK(refused(changed([&](KernelGraph& g) { g.kernel_arguments[4] = argument_of(kind); }),
                  "does not have what it is made of"));
  }
  for (const int32_t number : {1, -2, INT32_MAX}) {
    CHECK(refused(changed([&](KernelGraph& g) {
                    g.kernel_arguments[4] = argument_of(Kind::INTEGER, 0, {6}, {number});
                  }),
                  "names an expression that is not there"));
  }
  CHECK(refused(
      changed([](KernelGraph& g) { g.kernel_arguments[4] = argument_of(static_cast<Kind>(99)); }),
      "an argument is of an unknown kind"));
  CHECK(
      refused(changed([](KernelGraph& g) { g.name = std::string(256, 'a'); }), "too long a name"));
  CHECK(refused(changed([](KernelGraph& g) {
                  const std::vector<int64_t> many(65, 1);
                  g.kernel_arguments[2] = argument_of(Kind::INTEGERS, 0, many);
                }),
                "too many numbers"));
  KernelGraph graph;
  graph.nodes[1].inputs = {1, 0, -1};
  CHECK(refused(graph, "a tensor of a list is missing"));
  graph.nodes[1].inputs = {-1, 0, 1};
  CHECK(refused(graph, "its input 0 is missing"));
  graph = KernelGraph();
  graph.nodes[1].outputs = {-1, 4};
  CHECK(refused(graph, "its output 0 is missing"));
  graph.nodes[1].outputs = {0, 4};
  CHECK(refused(graph, "which is an input or a constant"));
  graph = KernelGraph();
  graph.values[2].sizes = {4, 6};
  graph.values[2].strides = {1, 4};
  CHECK(refused(graph, "are not those of a dense tensor in its dim order"));
}

void test_what_kernels_do_wrong() {
  const MixTable shorter(mix_less);
  EngineDelegate less(KernelGraph(), nullptr, size_t{1} << 16, shorter.table());
  Run run(6);
  CHECK(!less.run(run.args(), 1).ok());
  CHECK(std::strstr(less.message(),
                    "acme::mix.out: the result has sizes (5, 4), but the output has "
                    "the fixed sizes (6, 4)") != nullptr);
  const MixTable longer(mix_and_more);
  std::vector<uint8_t> memory(256);
  Allocator scratch(memory.data(), memory.size());
  EngineDelegate more(KernelGraph(), nullptr, size_t{1} << 16, longer.table(), true);
  CHECK(more.run(run.args(), 1, &scratch).code() == Code::Internal);
  CHECK(std::strstr(more.message(), "acme::mix.out: the kernel wrote past the end of argument 7") !=
        nullptr);
  const MixTable sound;
  EngineDelegate checked(KernelGraph(), nullptr, size_t{1} << 16, sound.table(), true);
  scratch.reset();
  CHECK(checked.run(run.args(), 1, &scratch).ok() && run.is_right(6));
}

// A hostile program lets a result lie where integers are that the kernel may read as indices.
void test_results_over_indices() {
  const MixTable kernels;
  KernelGraph graph;
  graph.values[0].dtype = DType::Int32;
  graph.nodes.erase(graph.nodes.begin());
  graph.nodes[0].inputs = {1, 0, 1};
  EngineDelegate delegate(graph, nullptr, size_t{1} << 16, kernels.table());
  CHECK(delegate.loaded().ok());
  EngineTensor out({6, 4}, 24), total({1}, 1);
  int32_t sizes[] = {6, 4}, strides[] = {4, 1};
  const uint8_t order[] = {0, 1};
  Tensor x = out.tensor();
  x.dtype = DType::Int32;
  x.data = total.data();  // reads what the kernel writes
  x.sizes = sizes;
  x.strides = strides;
  x.dim_order = order;
  x.numel = x.capacity = 24;
  EValue value;
  value.tag = Tag::Tensor;
  value.t = &x;
  CHECK(delegate.run({&value, out.value(), total.value()}, 1).code() == Code::InvalidProgram);
  CHECK(std::strstr(delegate.message(), "argument 8, which the operator writes, is also read as") !=
        nullptr);
}

}  // namespace

int main() {
  test_sizes();
  test_scratch_is_shared();
  test_kernels_that_do_not_fit();
  test_payloads_that_do_not_fit();
  test_what_kernels_do_wrong();
  test_results_over_indices();
  return check_result();
}
