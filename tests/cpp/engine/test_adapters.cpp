// What adapters add to linear layers, compared with sums in double on each instruction set; that a
// row's result does not depend on the rows beside it; and what payloads and runs refuse.
#include "cpu_kernels.h"
#include "engine_payload.h"
#include "rushlight/delegate/kv_cache.h"
#include "rushlight/engine/kernels/products/adapter.h"
#include "rushlight/kernel/loops/half.h"
#include "rushlight/module/module.h"

using namespace rushlight;
using namespace rushlight::engine;
using namespace rushlight::test;

namespace {

int64_t padded(int64_t size) { return (size + 15) / 16 * 16; }

// The weights of one layer, which every type holds exactly.
struct Layer {
  int64_t in, out, rank;
  bool is_half;
  std::vector<float> a, b;  // [rank, in], [out, rank]
  Guarded<float> a_floats, b_floats;
  Guarded<uint16_t> a_halves, b_halves;

  Layer(int64_t in, int64_t out, int64_t rank, bool is_half, Random& random)
      : in(in),
        out(out),
        rank(rank),
        is_half(is_half),
        a_floats(rank * padded(in), 0),
        b_floats(rank * padded(out), 0),
        a_halves(rank * padded(in), 0),
        b_halves(rank * padded(out), 0) {
    const auto draw = [&] { return static_cast<float>(random.whole(-64, 64)) / 64; };
    for (int64_t i = 0; i < rank * in; ++i) {
      a.push_back(draw());
      put(a_floats, a_halves, i / in * padded(in) + i % in, a.back());
    }
    for (int64_t i = 0; i < out * rank; ++i) {
      b.push_back(draw());
      const int64_t column = i / rank, k = i % rank;
      put(b_floats, b_halves, (column / 16 * rank + k) * 16 + column % 16, b.back());
    }
  }
  static void put(Guarded<float>& floats, Guarded<uint16_t>& halves, int64_t at, float value) {
    floats.data()[at] = value;
    halves.data()[at] = kernels::plain::narrow_half(value).bits;
  }
  SiteWeights weights() const {
    SiteWeights weights;
    weights.a = is_half ? static_cast<const void*>(a_halves.data()) : a_floats.data();
    weights.b = is_half ? static_cast<const void*>(b_halves.data()) : b_floats.data();
    weights.dtype = is_half ? DType::Float16 : DType::Float32;
    weights.rank = static_cast<uint32_t>(rank);
    weights.in = static_cast<uint32_t>(in);
    weights.out = static_cast<uint32_t>(out);
    return weights;
  }
  double added(const float* x, int64_t column, double* size) const {
    double sum = 0;
    for (int64_t k = 0; k < rank; ++k) {
      double h = 0, h_size = 0;
      for (int64_t j = 0; j < in; ++j) {
        const double term = double{x[j]} * double{a[static_cast<size_t>(k * in + j)]};
        h += term;
        h_size += std::fabs(term);
      }
      const double factor = double{b[static_cast<size_t>(column * rank + k)]};
      sum += h * factor;
      *size += h_size * std::fabs(factor);
    }
    return sum;
  }
};

struct Case {
  int64_t rows, in, out, rank;
  bool is_half = false;
  int64_t gap = 0;  // between rows
};

void check_case(const Case& test, PoolWorkers& two) {
  Random random(static_cast<uint64_t>(test.rows * 7 + test.rank));
  const Layer layer(test.in, test.out, test.rank, test.is_half, random);
  const int64_t x_stride = test.in + test.gap, y_stride = test.out + test.gap;
  const std::vector<float> x = random.reals(test.rows * x_stride);
  const std::vector<float> before = random.reals(test.rows * y_stride);
  const auto run = [&](int64_t first, int64_t count, float* y, Workers* workers) {
    Guarded<float> scratch(count * test.rank);
    AdapterProduct product;
    product.rows = count;
    product.x = x.data() + first * x_stride;
    product.x_stride = x_stride;
    product.y = y + first * y_stride;
    product.y_stride = y_stride;
    add_adapter(product, layer.weights(), scratch.data(), workers);
    CHECK(scratch.intact());
  };
  Guarded<float> alone(test.rows * y_stride), shared(test.rows * y_stride),
      single(test.rows * y_stride);
  for (Guarded<float>* y : {&alone, &shared, &single}) {
    if (!before.empty()) std::memcpy(y->data(), before.data(), before.size() * sizeof(float));
  }
  run(0, test.rows, alone.data(), nullptr);
  run(0, test.rows, shared.data(), &two);
  for (int64_t i = 0; i < test.rows; ++i) run(i, 1, single.data(), i % 2 == 0 ? nullptr : &two);
  CHECK(alone.intact() && alone == shared && alone == single);
  for (int64_t i = 0; i < test.rows; ++i) {
    for (int64_t j = 0; j < y_stride; ++j) {
      const auto at = static_cast<size_t>(i * y_stride + j);
      double size = std::fabs(double{before[at]});
      double wanted = double{before[at]};
      if (j < test.out) wanted += layer.added(x.data() + i * x_stride, j, &size);
      CHECK(std::fabs(double{alone.data()[at]} - wanted) <= 2e-6 * size);
      CHECK(j < test.out || alone.data()[at] == before[at]);
    }
  }
}

void test_kernel(PoolWorkers& two) {
  for (const bool is_half : {false, true}) {
    for (const int64_t rank : {1, 3, 4, 7, 8, 16, 33}) {
      check_case({1, 48, 64, rank, is_half}, two);
      check_case({5, 33, 17, rank, is_half, 3}, two);
    }
    for (int64_t rows = 0; rows <= 9; ++rows) check_case({rows, 20, 1, 8, is_half, 1}, two);
    check_case({37, 7, 700, 16, is_half}, two);
    check_case({2, 1, 16, 256, is_half}, two);
  }
  check_case({3, 900, 2000, 64, true}, two);  // large enough for two threads
}

// --- in a payload

constexpr int64_t kTokens = 4, kIn = 20, kWidths[] = {24, 8};
constexpr uint32_t kRank = 16;

// Two layers side by side; `is_in_place`: the result lies where the first input does.
EngineGraph graph_of(bool is_in_place = false, uint32_t rank = kRank) {
  Table adapter;
  adapter.ref(0, vector_of<int64_t>({2, 0}));
  adapter.ref(1, vector_of<int64_t>({kWidths[0], kWidths[1]}));
  adapter.scalar<uint32_t>(2, rank);
  EngineGraph graph;
  graph.version = 9;
  graph.n_inputs = 3;
  graph.n_outputs = 1;
  const auto rows = [](int64_t width, Place place, uint32_t index) {
    EngineValue value;
    value.sizes = {kTokens, width};
    value.strides = {width, 1};
    value.place = place;
    value.index = index;
    return value;
  };
  EngineValue sequences;
  sequences.sizes = {kTokens};
  sequences.strides = {1};
  sequences.place = Place::INPUT;
  sequences.index = 2;
  sequences.dtype = DType::Int64;
  graph.values = {rows(32, Place::INPUT, 0), rows(kIn, Place::INPUT, 1), sequences,
                  rows(32, Place::OUTPUT, 0)};
  graph.nodes = {{schema::Operation::Adapter, adapter, {is_in_place ? 3 : 0, 1, 2}, {3}}};
  return graph;
}

void test_refused_payloads() {
  CHECK(EngineDelegate(graph_of(), nullptr, size_t{1} << 20).loaded().ok());
  check_refused(graph_of(false, 0), "its layers do not fit");
  check_refused(graph_of(false, 257), "its layers do not fit");
  for (const auto& sites : {std::vector<int64_t>{}, {0}, {-1, 0}, {0, 1, 2}}) {
    EngineGraph graph = graph_of();
    graph.nodes[0].operation = Table()
                                   .ref(0, vector_of(sites))
                                   .ref(1, vector_of<int64_t>({kWidths[0], kWidths[1]}))
                                   .scalar<uint32_t>(2, kRank);
    check_refused(graph, "its layers do not fit");
  }
  for (const auto& widths : {std::vector<int64_t>{24, 9}, {24, 7}, {32, 0}, {-8, 40}}) {
    EngineGraph graph = graph_of();
    graph.nodes[0].operation = Table()
                                   .ref(0, vector_of<int64_t>({0, 1}))
                                   .ref(1, vector_of(widths))
                                   .scalar<uint32_t>(2, kRank);
    check_refused(graph, "its layers do not fit");
  }
  EngineGraph graph = graph_of();
  graph.nodes[0].inputs[2] = -1;
  check_refused(graph, "its input 2 is missing");
  for (size_t value = 0; value < 4; ++value) {
    graph = graph_of();
    graph.values[value].sizes[0] = kTokens - 1;
    check_refused(graph, "its sizes do not fit");
  }
  graph = graph_of();
  graph.values[0].sizes[1] = 31;
  check_refused(graph, "its sizes do not fit");
}

// What a run of the payload is given, and makes.
struct Run {
  std::vector<float> before, x, y = std::vector<float>(kTokens * 32, 0);
  std::vector<int64_t> sequences = {0, 1, 1, 2};
  Layer first, second;
  SiteWeights sites[3];
  AdapterWeights adapter;
  KvSequence known[3];
  KvCache cache;

  explicit Run(Random& random)
      : before(random.reals(kTokens * 32)),
        x(random.reals(kTokens * kIn)),
        first(kIn, kWidths[0], 5, true, random),
        second(kIn, kWidths[1], kRank, false, random) {
    sites[2] = first.weights();
    sites[0] = second.weights();
    adapter.sites = {sites, 3};
    known[1].adapter = &adapter;
    cache.sequences = {known, 3};
  }

  // The code of the run, whose message is `message`.
  Code execute(const char** message, bool has_cache = true) {
    static EngineDelegate delegate(graph_of(), nullptr, size_t{1} << 20);
    HostTensor tensors[] = {
        {DType::Float32, {kTokens, 32}, before.data()},
        {DType::Float32, {kTokens, kIn}, x.data()},
        {DType::Int64, {static_cast<int32_t>(kTokens)}, sequences.data()},
        {DType::Float32, {kTokens, 32}, y.data()},
    };
    EValue values[4];
    std::vector<EValue*> args;
    for (size_t i = 0; i < 4; ++i) {
      values[i].tag = Tag::Tensor;
      values[i].t = const_cast<Tensor*>(&tensors[i].tensor());
      args.push_back(&values[i]);
    }
    const Status status = delegate.run(args, 3, nullptr, has_cache ? &cache : nullptr);
    *message = delegate.message();
    return status.code();
  }
};

void test_runs() {
  Random random(11);
  Run run(random);
  const char* message = nullptr;
  CHECK(run.execute(&message) == Code::Ok);
  for (int64_t i = 0; i < kTokens; ++i) {
    for (int64_t j = 0; j < 32; ++j) {
      const auto at = static_cast<size_t>(i * 32 + j);
      const bool is_first = j < kWidths[0];
      const Layer& layer = is_first ? run.first : run.second;
      double size = std::fabs(double{run.before[at]}), wanted = double{run.before[at]};
      const bool is_changed = run.sequences[static_cast<size_t>(i)] == 1;
      if (is_changed) {
        wanted += layer.added(run.x.data() + i * kIn, is_first ? j : j - kWidths[0], &size);
      }
      CHECK(std::fabs(double{run.y[at]} - wanted) <= 2e-6 * size);
      CHECK(is_changed || run.y[at] == run.before[at]);
    }
  }
  // A site that the adapter leaves as it is, or has no weights for.
  run.adapter.sites = {run.sites, 1};
  CHECK(run.execute(&message) == Code::Ok);
  CHECK(std::memcmp(&run.y[32], &run.before[32], kWidths[0] * sizeof(float)) == 0);
  CHECK(run.y[32 + kWidths[0]] != run.before[32 + kWidths[0]]);
}

void check_refused_run(Run& run, Code code, const char* wanted, bool has_cache = true) {
  const char* message = nullptr;
  CHECK(run.execute(&message, has_cache) == code);
  CHECK(std::strstr(message, wanted) != nullptr);
}

void test_refused_runs() {
  Random random(12);
  {
    Run run(random);
    check_refused_run(run, Code::InvalidState, "the sequences of a language model's runner", false);
    for (const int64_t sequence : {int64_t{-1}, int64_t{3}, INT64_MAX, INT64_MIN}) {
      run.sequences[2] = sequence;
      check_refused_run(run, Code::InvalidArgument, "sequences[2] is ");
    }
  }
  Run run(random);
  run.sites[2].in = kIn + 1;
  check_refused_run(run, Code::InvalidArgument, "the adapter of site 2 has rank 5, 21 inputs");
  run.sites[2].in = kIn;
  run.sites[2].out = 25;
  check_refused_run(run, Code::InvalidArgument, "25 outputs");
  run.sites[2].out = 24;
  run.sites[2].rank = kRank + 1;
  check_refused_run(run, Code::InvalidArgument, "rank 17");
}

}  // namespace

int main() {
  PoolWorkers two(2);
  on_each_isa([&] { test_kernel(two); });
  test_refused_payloads();
  test_runs();
  test_refused_runs();
  return check_result();
}
