// Quantised products in a payload: results for several numbers of rows, compared with products of
// the dequantized rows and weights; and payloads that are refused.
#include <functional>

#include "cpu_kernels.h"
#include "engine_payload.h"
#include "rushlight/engine/kernels/rows/quantize.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

constexpr int64_t kDepth = 40;
constexpr int64_t kWidth = 20;
using Graph = QuantizedGraph;

struct Run {
  EngineTensor x, w, bytes, floats, dynamic, nibbles, real8, real4;

  explicit Run(int32_t rows)
      : x({rows, 40}, int64_t{rows} * 40),
        w({1280}, 1280),
        bytes({9, 20}, 180),
        floats({9, 20}, 180),
        dynamic({9, 20}, 180),
        nibbles({9, 20}, 180),
        real8({9, 20}, 180),
        real4({9, 20}, 180) {
    Random random(static_cast<uint64_t>(rows) + 1);
    for (size_t i = 0; i < x.numel(); ++i) x.data()[i] = random.real(-3, 2);
    for (size_t i = 0; i < w.numel(); ++i) w.data()[i] = random.real(-1.5f, 1.5f);
    // The columns' integers are made from the first bytes, so these are small.
    for (size_t i = 0; i < 128; ++i) w.data()[i] = random.real(-1.2f, -1.1f);
    for (size_t i = 2; i < 128; i += 4) w.data()[i] = w.data()[i + 1] = -1.28f;
  }
  std::vector<EValue*> args() {
    return {x.value(),       w.value(),       bytes.value(), floats.value(),
            dynamic.value(), nibbles.value(), real8.value(), real4.value()};
  }

  // Element i of w as a byte.
  int32_t byte(int64_t i) const {
    const float q = std::nearbyint(w.tensor().as<float>()[i] * (1.0f / Graph::kScale)) + 128;
    return static_cast<int32_t>(std::fmin(std::fmax(q, 0), 255));
  }
  int32_t weight(int64_t k, int64_t j) const {
    return byte((j / 16 * 10 + k / 4) * 64 + j % 16 * 4 + k % 4) - 128;
  }
  int32_t nibble(int64_t k, int64_t j) const {
    const int32_t both = byte((j / 16 * 5 + k / 8) * 64 + j % 16 * 4 + k % 4);
    const int32_t u = k % 8 < 4 ? both & 15 : both >> 4;
    return u < 8 ? u : u - 16;
  }
  int64_t start(int64_t j) const {
    return byte(4 * j) + byte(4 * j + 1) * 256 + byte(4 * j + 2) * 65536 +
           byte(4 * j + 3) * 16777216;
  }
};

bool near(float value, double expected, double size) {
  if (std::fabs(value - expected) <= 2e-6 * size) return true;
  std::fprintf(stderr, "%g, not %g\n", static_cast<double>(value), expected);
  return false;
}

void check_row(Run& run, int64_t i, const uint8_t* row, float scale, double zero_point) {
  const float* columns = run.w.data();
  for (int64_t j = 0; j < kWidth; ++j) {
    const size_t at = static_cast<size_t>(i * kWidth + j);
    const auto start = static_cast<double>(run.start(j));
    double sum = 0;
    double in_groups = 0;
    const double multiplier = static_cast<double>(columns[j]);
    double real8 = multiplier;
    double real4 = 0;
    for (int64_t k = 0; k < kDepth; ++k) {
      const double scale = static_cast<double>(columns[(j / 16 * 5 + k / 8) * 16 + j % 16]);
      const double number = static_cast<double>(run.x.data()[i * kDepth + k]);
      sum += row[k] * run.weight(k, j);
      in_groups += scale * row[k] * run.nibble(k, j);
      real8 += number * run.weight(k, j) * multiplier;
      real4 += number * run.nibble(k, j) * scale;
    }
    CHECK(near(run.real8.data()[at], real8, kDepth * 3 * 128 * 1.5));
    CHECK(near(run.real4.data()[at], real4, kDepth * 3 * 8 * 1.5));
    const double number = (sum + start) * multiplier;
    CHECK(near(run.floats.data()[at], number, std::fabs(number)));
    const double q = std::fmin(std::fmax(std::nearbyint(number) + 100, 3), 250);
    CHECK(std::fabs(run.bytes.data()[at] - (q - 100) * 2) <= 2);  // rounding may differ
    const double dynamic = (sum - zero_point * start) * multiplier * scale + multiplier;
    CHECK(near(run.dynamic.data()[at], dynamic, std::fabs(dynamic) + 1));
    const double share = zero_point * multiplier;
    CHECK(near(run.nibbles.data()[at], (in_groups - share) * scale,
               (std::fabs(share) + 40 * 8 * 255) * static_cast<double>(scale)));
  }
}

void check_run(EngineDelegate& delegate, int32_t rows) {
  Run run(rows);
  const Status status = delegate.run(run.args(), 2);
  if (!status.ok()) std::fprintf(stderr, "%s\n", delegate.message());
  CHECK(status.ok());
  for (const EngineTensor* out :
       {&run.bytes, &run.floats, &run.dynamic, &run.nibbles, &run.real8, &run.real4}) {
    CHECK(out->has({rows, 20}) && out->rest_untouched());
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(rows * kDepth));
  std::vector<float> scales(static_cast<size_t>(2 * rows));
  engine::QuantizeRows job;
  job.rows = rows;
  job.width = job.in_stride = job.out_stride = kDepth;
  job.in = run.x.data();
  job.out = bytes.data();
  job.scales = scales.data();
  engine::quantize_rows(job, nullptr);
  for (int64_t i = 0; i < rows; ++i) {
    check_row(run, i, bytes.data() + i * kDepth, scales[static_cast<size_t>(2 * i)],
              static_cast<double>(scales[static_cast<size_t>(2 * i + 1)]));
  }
}

void test_all_sizes() {
  PoolWorkers two(2);
  for (Workers* workers : {static_cast<Workers*>(nullptr), static_cast<Workers*>(&two)}) {
    EngineDelegate delegate(Graph(), workers);
    if (!delegate.loaded().ok()) std::fprintf(stderr, "%s\n", delegate.message());
    CHECK(delegate.loaded().ok());
    if (!delegate.loaded().ok()) return;
    for (const int32_t rows : {9, 1, 0, 7, 9}) check_run(delegate, rows);
  }
}

using Change = std::function<void(Graph&)>;

void refused(const Change& change, const char* reason) {
  Graph graph;
  change(graph);
  check_refused(graph, reason);
}

// Keeps its rows, panels and results except for these.
void refuse_values(Graph::Node node, size_t input, int32_t number, const char* reason) {
  refused([=](Graph& g) { g.nodes[node].inputs[input] = number; }, reason);
}

void test_refused_products() {
  for (const Graph::Node node : {Graph::kProduct, Graph::kFloatProduct}) {
    refuse_values(node, 0, Graph::kX, "its input 0 is float32, but must be uint8");
    refuse_values(node, 0, Graph::kStatic, "of its panels are not those of");
    refuse_values(node, 1, Graph::kBytes, "its input 1 is uint8, but must be int8");
    refuse_values(node, 1, -1, "its input 1 is missing");
    refuse_values(node, 3, Graph::kW, "of its multipliers are not those of 32 elements");
    refused([=](Graph& g) { g.nodes[node].inputs.push_back(0); },
            "it has 5 inputs and 1 outputs, but at most 4 and 1");
  }
  refused([](Graph& g) { g.values[Graph::kStart].sizes = {31}; },
          "of its initial sums are not those of 32 elements");
  refused([](Graph& g) { g.values[Graph::kRows].strides = {0, 1}; }, "which repeat elements");
  refused([](Graph& g) { g.values[Graph::kStatic].strides = {1, 9}; },
          "are not those of rows without gaps");
  refused([](Graph& g) { g.values[Graph::kStatic].dtype = DType::Int8; },
          "its output 0 is int8, but must be uint8");
  const auto requantize = [](int32_t zero_point, int32_t low, int32_t high) {
    refused(
        [=](Graph& g) {
          Table bounds, product;
          bounds.scalar<int32_t>(0, zero_point).scalar<int32_t>(1, low).scalar<int32_t>(2, high);
          g.nodes[Graph::kProduct].operation = product.ref(0, bounds.node());
        },
        "but all must be within 0..255 and in order");
  };
  requantize(-1, 0, 255);
  requantize(256, 0, 255);
  requantize(0, 0, 256);
  requantize(0, INT32_MIN, 255);
  requantize(0, 9, 8);
  refused(
      [](Graph& g) {
        Table epilogue, product;
        epilogue.scalar<uint8_t>(0, 1);
        g.nodes[Graph::kProduct].operation = product.ref(1, epilogue.node());
      },
      "but its epilogue is for float32");
}

void test_refused_residuals() {
  const auto adding = [](Graph::Node node, const Table& residual, const char* reason) {
    refused(
        [=](Graph& g) {
          Table bounds, product;
          g.nodes[node].operation = product.ref(0, bounds.node()).ref(2, residual.node());
        },
        reason);
  };
  const auto of_value = [&](uint32_t value, const char* reason) {
    adding(Graph::kProduct, residual_of(value, sum_of()), reason);
  };
  for (const uint32_t value : {1000u, UINT32_MAX}) {
    of_value(value, "which is not in the graph");
  }
  of_value(Graph::kFloats, "its residual is float32, but must be uint8");
  of_value(Graph::kRows, "its residual has sizes");
  of_value(Graph::kBytes, "its residual has sizes");
  refused(
      [](Graph& g) {
        g.values.push_back(g.values[Graph::kStatic]);
        g.values.back().strides = {1, 9};
        Table bounds, product;
        const auto gaps = static_cast<uint32_t>(g.values.size() - 1);
        g.nodes[Graph::kProduct].operation =
            product.ref(0, bounds.node()).ref(2, residual_of(gaps, sum_of()).node());
      },
      "its residual has sizes");
  adding(Graph::kFloatProduct, residual_of(Graph::kStatic, sum_of()),
         "but its residual is added to uint8");
  const auto of_sum = [&](const Table& sum, const char* reason) {
    adding(Graph::kProduct, residual_of(Graph::kStatic, sum), reason);
  };
  of_sum(sum_of(2), "can only be added or subtracted");
  of_sum(sum_of(3), "of an unknown kind");
  of_sum(sum_of(0, 0.5f, 256), "which are not within 0..255");
  for (const float scale : {-1.0f, 256.0f, kInfinity, kNotANumber}) {
    of_sum(sum_of(1, scale), "not within 2^-10 and 2^8");
  }
  of_sum(sum_of(0, 0.5f, 100, 0), "not within 2^-10 and 2^8");
  Table bounds;
  bounds.scalar<int32_t>(0, 256);
  of_sum(sum_of().ref(6, bounds.node()), "but all must be within 0..255");
}

void test_refused_dynamic_products() {
  const Graph::Node node = Graph::kProduct8;
  refuse_values(node, 1, Graph::kColumns, "of its rows' scales and zero points are not those of");
  refuse_values(node, 2, Graph::kNibblePanels, "but must be");
  refuse_values(node, 3, Graph::kW, "of its scales are not those of 32 elements");
  refuse_values(node, 4, Graph::kColumns, "but must be");
  refuse_values(node, 5, Graph::kW, "of its bias are not those of");
  refuse_values(Graph::kProduct4, 4, Graph::kStart, "but must be");
  refuse_values(Graph::kProduct4, 3, Graph::kColumns, "of its groups' scales are not those of");
  refuse_values(Graph::kProduct4, 2, Graph::kBytes, "of its panels are not those of");
  const auto parameters = [](uint8_t bits, int64_t group, const char* reason) {
    refused(
        [=](Graph& g) {
          Table product;
          g.nodes[Graph::kProduct4].operation =
              product.scalar<uint8_t>(0, bits).scalar<int64_t>(1, group);
        },
        reason);
  };
  parameters(5, 8, "its weights have 5 bits, but must have 8 or 4");
  parameters(8, 8, "but must be");
  for (const int64_t group :
       {int64_t{-8}, int64_t{4}, int64_t{12}, int64_t{16}, int64_t{48}, INT64_MAX, INT64_MIN}) {
    parameters(4, group, "its weights have 4 bits in groups of");
  }
}

void test_refused_weights() {
  const Graph::Node bytes = Graph::kRealProduct8;
  const Graph::Node nibbles = Graph::kRealProduct4;
  const char* scales = "scales are neither one for each of";
  refuse_values(bytes, 0, Graph::kRows, "but must be");
  refuse_values(bytes, 1, Graph::kBytes, "of its panels are not those of");
  refuse_values(bytes, 1, Graph::kStart, "but at most");
  refuse_values(bytes, 2, Graph::kW, "of its bias are not those of");
  refuse_values(bytes, 3, Graph::kStart, "but must be");
  refuse_values(bytes, 3, Graph::kX, scales);
  refuse_values(bytes, 3, -1, scales);
  refuse_values(nibbles, 1, Graph::kBytes, "of its panels are not those of");
  refused([](Graph& g) { g.values[Graph::kGroupScales].sizes = {2, 3, 16}; }, "scales");
  for (const int64_t groups : {int64_t{0}, int64_t{10}, int64_t{4}}) {
    refused(
        [=](Graph& g) {
          EngineValue& value = g.values[Graph::kGroupScales];
          value.sizes[1] = groups;
          value.strides[0] = groups * 16;
          g.nodes.erase(g.nodes.begin() + Graph::kProduct4);
        },
        scales);
  }
}

void test_refused_conversions() {
  refused([](Graph& g) { g.values[Graph::kScales].sizes = {9, 1}; },
          "of its rows' scales and zero points are not those of");
  refused([](Graph& g) { g.values[Graph::kRows].sizes = {9, 39}; },
          "its input and its result have sizes");
  refused([](Graph& g) { g.nodes[Graph::kQuantize].outputs = {Graph::kRows}; },
          "its output 1 is missing");
  refuse_values(Graph::kFlip, 0, Graph::kPanels, "but only float32, int8 and uint8");
  const auto parameters = [](float scale, int32_t zero_point) {
    refused(
        [=](Graph& g) {
          Table convert;
          g.nodes[Graph::kToBytes].operation =
              convert.scalar<float>(0, scale).scalar<int32_t>(1, zero_point);
        },
        "but must be a positive number and 0..255");
  };
  for (const float scale : {0.0f, -1.0f, 1e-40f, kInfinity, kNotANumber}) parameters(scale, 0);
  parameters(1, -1);
  parameters(1, 256);
}

// Rows so long that sums could exceed 32 bits.
void test_refused_depth() {
  Graph graph;
  for (const size_t i : {size_t{Graph::kX}, size_t{Graph::kRows}}) {
    graph.values[i].sizes[1] = graph.values[i].strides[0] = 65794;
  }
  graph.scratch_size = 1 << 21;
  for (EngineValue& value : graph.values) {
    if (value.place == Place::SCRATCH && value.offset > 2560) value.offset += 1 << 20;
  }
  EngineDelegate delegate(graph, nullptr, size_t{1} << 22);
  CHECK(std::strstr(delegate.message(), "and would be beyond 32 bits") != nullptr);
}

}  // namespace

int main() {
  on_each_isa([] { test_all_sizes(); });
  test_refused_products();
  test_refused_residuals();
  test_refused_dynamic_products();
  test_refused_weights();
  test_refused_conversions();
  test_refused_depth();
  return check_result();
}
