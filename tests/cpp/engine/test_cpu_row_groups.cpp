// The CPU engine's products of rows that are quantised in groups, compared with sums in double on
// each instruction set: weights of 8 and 4 bits, groups of every kind of scale, extremes; and how
// rows are rounded.
#include <functional>

#include "cpu_kernels.h"
#include "engine_payload.h"
#include "rushlight/engine/kernels/products/dot_product.h"
#include "rushlight/engine/kernels/rows/quantize.h"
#include "rushlight/kernel/loops/half.h"

using namespace rushlight;
using namespace rushlight::engine;
using namespace rushlight::test;

namespace {

struct Case {
  int64_t rows, depth, columns;
  int32_t bits = 8;
  int64_t row_group = 32, group = 32;  // terms that share a scale; the first divides the second
  ScaleType type = ScaleType::Float16;
  int64_t a_gap = 0, c_gap = 0;  // between rows
  bool extremes = false;         // all integers have the greatest magnitude
  bool has_epilogue = false;     // results get a bias and a residual
  bool clamps = false;           // and are clamped
};

// Scales that every type holds exactly.
float scale_of(Random& random) { return static_cast<float>(random.whole(1, 127)) / 4096; }

struct Operands {
  std::vector<int8_t> a, b;  // [rows, depth + gap], [depth, columns]
  Guarded<int8_t> panels;
  std::vector<float> row_scales, scales, bias, residual;
  std::vector<uint16_t> halves;
  std::vector<int32_t> sums;

  Operands(const Case& test, Random& random)
      : a(static_cast<size_t>(test.rows * (test.depth + test.a_gap))),
        b(static_cast<size_t>(test.depth * test.columns)),
        panels(panels_of(test.columns) * panel_quads(test.depth, test.bits) * 64, 0),
        bias(random.reals(panels_of(test.columns) * kPanel)),
        residual(random.reals(test.rows * test.columns)) {
    const int64_t sign = random.chance(2) ? 1 : -1;
    const int64_t least = test.bits == 8 ? -128 : -8;
    for (int8_t& x : a) {
      x = static_cast<int8_t>(test.extremes ? 127 * sign : random.whole(-127, 127));
    }
    for (int8_t& x : b) {
      x = static_cast<int8_t>(test.extremes ? least : random.whole(least, -1 - least));
    }
    for (int64_t k = 0; k < test.depth; ++k) {
      for (int64_t j = 0; j < test.columns; ++j) pack(test, k, j);
    }
    for (int64_t i = 0; i < test.rows * (test.depth / test.row_group); ++i) {
      row_scales.push_back(scale_of(random));
      sums.push_back(0);
      const int8_t* group = row(test, i / (test.depth / test.row_group)) +
                            i % (test.depth / test.row_group) * test.row_group;
      for (int64_t k = 0; k < test.row_group; ++k) sums.back() += group[k];
    }
    const int64_t n = panels_of(test.columns) * kPanel * (test.depth / test.group);
    for (int64_t i = 0; i < n; ++i) {
      scales.push_back(scale_of(random));
      const uint32_t bits = kernels::plain::bits_of(scales.back());
      halves.push_back(test.type == ScaleType::Float16
                           ? kernels::plain::narrow_half(scales.back()).bits
                           : static_cast<uint16_t>(bits >> 16));
    }
  }
  const int8_t* row(const Case& test, int64_t i) const {
    return a.data() + i * (test.depth + test.a_gap);
  }
  void pack(const Case& test, int64_t k, int64_t j) {
    const int8_t x = b[static_cast<size_t>(k * test.columns + j)];
    const int64_t together = test.bits == 8 ? 4 : 8;
    const int64_t quads = panel_quads(test.depth, test.bits);
    int8_t& at = panels.data()[((j / 16) * quads + k / together) * 64 + j % 16 * 4 + k % 4];
    const int nibble = (x & 15) << (k % 8 < 4 ? 0 : 4);
    at = static_cast<int8_t>(test.bits == 8 ? x : at | nibble);
  }
};

QuantizedProduct product_of(const Case& test, const Operands& operands) {
  QuantizedProduct p;
  p.rows = test.rows;
  p.depth = test.depth;
  p.columns = test.columns;
  p.a = reinterpret_cast<const uint8_t*>(operands.a.data());
  p.a_stride = test.depth + test.a_gap;
  p.panels = operands.panels.data();
  p.bits = test.bits;
  p.groups.groups = test.depth / test.group;
  p.groups.type = test.type;
  p.groups.scales = operands.halves.data();
  if (test.type == ScaleType::Float32) p.groups.scales = operands.scales.data();
  p.row_groups.groups = test.depth / test.row_group;
  p.row_groups.scales = operands.row_scales.data();
  p.row_groups.sums = operands.sums.data();
  p.results.scaled = true;
  p.results.stride = test.columns + test.c_gap;
  if (test.has_epilogue) {
    p.results.epilogue.bias = operands.bias.data();
    p.results.epilogue.residual = operands.residual.data();
    p.results.epilogue.residual_stride = test.columns;
  }
  if (test.clamps) {
    p.results.epilogue.low = -4;
    p.results.epilogue.high = 10;
  }
  return p;
}

Expected expected(const Case& test, const Operands& o, int64_t i, int64_t j) {
  Expected wanted;
  const int64_t row_groups = test.depth / test.row_group, groups = test.depth / test.group;
  for (int64_t g = 0; g < row_groups; ++g) {
    const int64_t of_column = (j / 16 * groups + g * test.row_group / test.group) * 16 + j % 16;
    const double scale = static_cast<double>(o.scales[static_cast<size_t>(of_column)]) *
                         static_cast<double>(o.row_scales[static_cast<size_t>(i * row_groups + g)]);
    for (int64_t k = g * test.row_group; k < (g + 1) * test.row_group; ++k) {
      wanted.add(scale * o.row(test, i)[k] * o.b[static_cast<size_t>(k * test.columns + j)]);
    }
  }
  if (test.has_epilogue) {
    wanted.add(static_cast<double>(o.bias[static_cast<size_t>(j)]));
    wanted.add(static_cast<double>(o.residual[static_cast<size_t>(i * test.columns + j)]));
  }
  return wanted;
}

void check_case(const Case& test, uint32_t seed, PoolWorkers& two) {
  Random random(seed);
  const Operands operands(test, random);
  QuantizedProduct p = product_of(test, operands);
  Guarded<float> alone(test.rows * p.results.stride);
  Guarded<float> shared(test.rows * p.results.stride);
  p.results.floats = alone.data();
  multiply(p, nullptr);
  p.results.floats = shared.data();
  multiply(p, &two);
  CHECK(alone.intact() && shared.intact() && alone == shared);
  for (int64_t i = 0; i < test.rows; ++i) {
    for (int64_t j = 0; j < p.results.stride; ++j) {
      const int64_t at = i * p.results.stride + j;
      CHECK(j >= test.columns
                ? alone.untouched(at)
                : expected(test, operands, i, j).holds(alone[at], p.results.epilogue));
    }
  }
}

void test_drawn_shapes(PoolWorkers& two) {
  Random random(7);
  for (uint32_t i = 0; i < 200; ++i) {
    Case test = {random.whole(0, i % 3 == 0 ? 60 : 16), 0, random.whole(1, 70)};
    test.bits = random.chance(2) ? 8 : 4;
    test.row_group = random.chance(3) ? 16 : 32;
    test.group = test.row_group * random.whole(1, 4);
    test.depth = test.group * random.whole(1, 5);
    test.type = static_cast<ScaleType>(random.whole(0, 2));
    test.a_gap = random.whole(0, 3);
    test.c_gap = random.whole(0, 2);
    test.extremes = random.chance(3);
    test.has_epilogue = random.chance(2);
    test.clamps = random.chance(2);
    check_case(test, i, two);
  }
}

void test_every_height_and_width(PoolWorkers& two) {
  for (int64_t rows = 1; rows <= 30; ++rows) {
    for (int64_t columns : {1, 15, 16, 17, 32, 33, 47}) {
      check_case({rows, 64, columns, 8}, 3, two);
      check_case({rows, 64, columns, 4}, 4, two);
    }
  }
}

// Large enough for several threads and several groups of rows.
void test_large(PoolWorkers& two) {
  check_case({150, 2048, 50, 8}, 1, two);
  check_case({150, 2048, 50, 4}, 2, two);
  check_case({1, 768, 1000, 8}, 3, two);
  check_case({4, 768, 1000, 4, 16, 16, ScaleType::Float32}, 4, two);
}

// --- how rows are rounded

void check_groups(int64_t rows, int64_t groups, int64_t size, const std::vector<float>& in,
                  PoolWorkers& two) {
  const int64_t width = groups * size;
  QuantizeGroups job;
  job.rows = rows;
  job.width = width;
  job.group_size = size;
  job.in = in.data();
  job.in_stride = width + 2;
  job.out_stride = width + 1;
  for (Workers* workers : {static_cast<Workers*>(nullptr), static_cast<Workers*>(&two)}) {
    Guarded<int8_t> out(rows * job.out_stride);
    Guarded<float> scales(rows * groups);
    Guarded<int32_t> sums(rows * groups);
    job.out = out.data();
    job.scales = scales.data();
    job.sums = sums.data();
    quantize_groups(job, workers);
    CHECK(out.intact() && scales.intact() && sums.intact());
    for (int64_t g = 0; g < rows * groups; ++g) {
      const float* x = in.data() + g / groups * job.in_stride + g % groups * size;
      const int8_t* q = out.data() + g / groups * job.out_stride + g % groups * size;
      float most = 0x1p-100f;
      bool finite = true;
      for (int64_t i = 0; i < size; ++i) {
        most = std::fmax(most, std::fabs(x[i]));
        finite = finite && std::isfinite(x[i]);
      }
      const float factor = 1.0f / most * 127.0f;
      CHECK(finite ? scales[g] == 1.0f / factor : std::isnan(scales[g]));
      int32_t sum = 0;
      for (int64_t i = 0; i < size; ++i) {
        CHECK(static_cast<float>(q[i]) == (finite ? std::nearbyint(x[i] * factor) : 0.0f));
        sum += q[i];
      }
      CHECK(sums[g] == sum);
    }
  }
}

void test_rows(PoolWorkers& two) {
  Random random(9);
  for (int64_t size : {16, 32}) {
    for (int64_t groups : {0, 1, 3, 300}) {
      std::vector<float> in = random.reals(5 * (groups * size + 2), -3, 2);
      check_groups(5, groups, size, in, two);
      for (float special : {0.0f, 1e-38f, 3e38f, kInfinity, kNotANumber}) {
        for (int64_t i = 0; i < size && groups > 1; ++i)
          in[static_cast<size_t>(size + i)] = special;
        check_groups(5, groups, size, in, two);
      }
    }
  }
}

// --- in a payload

using Graph = RowGroupsGraph;

int32_t byte_at(const EngineTensor& w, int64_t i) {
  const float q = std::nearbyint(w.tensor().as<float>()[i] * (1.0f / Graph::kScale)) + 128;
  return static_cast<int32_t>(std::fmin(std::fmax(q, 0), 255));
}

// x rounded in its group of 32 from `group` on.
double rounded(const float* group, int64_t k) {
  float most = 0;
  for (int64_t i = 0; i < 32; ++i) most = std::fmax(most, std::fabs(group[i]));
  const float factor = 1.0f / most * 127.0f;
  return static_cast<double>(std::nearbyint(group[k] * factor) * (1.0f / factor));
}

void check_run(EngineDelegate& delegate, int32_t rows) {
  EngineTensor x({rows, 64}, int64_t{rows} * 64), w({2048}, 2048), of8({9, 20}, 180),
      of4({9, 20}, 180);
  Random random(static_cast<uint64_t>(rows) + 1);
  for (size_t i = 0; i < x.numel(); ++i) x.data()[i] = random.real(-3, 2);
  for (size_t i = 0; i < w.numel(); ++i) w.data()[i] = random.real(-1.3f, 1.3f);
  const Status status = delegate.run({x.value(), w.value(), of8.value(), of4.value()}, 2);
  CHECK(status.ok() && of8.has({rows, 20}) && of4.has({rows, 20}));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < 20; ++j) {
      Expected wanted8, wanted4;
      for (int64_t k = 0; k < 64; ++k) {
        const double scale = static_cast<double>(w.data()[(j / 16 * 2 + k / 32) * 16 + j % 16]);
        const double term = rounded(x.data() + i * 64 + k / 32 * 32, k % 32) * scale;
        wanted8.add(term * (byte_at(w, (j / 16 * 16 + k / 4) * 64 + j % 16 * 4 + k % 4) - 128));
        const int32_t both = byte_at(w, (j / 16 * 8 + k / 8) * 64 + j % 16 * 4 + k % 4);
        const int32_t u = k % 8 < 4 ? both & 15 : both >> 4;
        wanted4.add(term * (u < 8 ? u : u - 16));
      }
      const auto at = static_cast<size_t>(i * 20 + j);
      CHECK(wanted8.holds(of8.data()[at], Epilogue()) && wanted4.holds(of4.data()[at], Epilogue()));
    }
  }
}

void test_payload() {
  PoolWorkers two(2);
  for (Workers* workers : {static_cast<Workers*>(nullptr), static_cast<Workers*>(&two)}) {
    EngineDelegate delegate(Graph(), workers);
    if (!delegate.loaded().ok()) std::fprintf(stderr, "%s\n", delegate.message());
    CHECK(delegate.loaded().ok());
    if (!delegate.loaded().ok()) return;
    for (const int32_t rows : {9, 1, 0, 7, 9}) check_run(delegate, rows);
  }
}

void refused(const std::function<void(Graph&)>& change, const char* reason) {
  Graph graph;
  change(graph);
  check_refused(graph, reason);
}

void refuse_input(size_t input, int32_t number, const char* reason) {
  refused([=](Graph& g) { g.nodes[Graph::kProduct8].inputs[input] = number; }, reason);
}

void test_refused() {
  refuse_input(0, Graph::kBytes, "its input 0 is uint8, but must be int8");
  refuse_input(1, Graph::kScales, "the scales of its rows are not those of");
  refuse_input(1, -1, "its input 1 is missing");
  refuse_input(2, Graph::kRowScales, "its input 2 is float32, but must be int32");
  refuse_input(3, Graph::kNibbles, "its input 3 is uint8, but must be int8");
  refuse_input(3, Graph::kRows, "of its panels are not those of");
  refuse_input(4, Graph::kX, "its groups' scales are not those of");
  for (const int64_t group : {int64_t{1}, int64_t{8}, int64_t{64}, INT64_MIN, INT64_MAX}) {
    refused([=](Graph& g) { g.nodes[Graph::kQuantize].operation = Graph::rows_of(group); },
            group == 64 ? "but must have 16 or 32, which divide 64" : "but must have 16 or 32");
    refused(
        [=](Graph& g) { g.nodes[Graph::kProduct8].operation = Graph::product_of(8, 32, group); },
        "but rows must have 16 or 32");
  }
  for (const int64_t group : {int64_t{-32}, int64_t{16}, int64_t{48}, INT64_MAX}) {
    refused(
        [=](Graph& g) { g.nodes[Graph::kProduct8].operation = Graph::product_of(8, group, 32); },
        "which divide the weights'");
  }
  refused([](Graph& g) { g.nodes[Graph::kProduct8].operation = Graph::product_of(5, 32, 32); },
          "its weights have 5 bits");
  refused([](Graph& g) { g.values[Graph::kSums].sizes = {9, 1}; }, "groups' sums are not those of");
  refused([](Graph& g) { g.nodes[Graph::kQuantize].outputs.pop_back(); },
          "its output 2 is missing");
}

}  // namespace

int main() {
  PoolWorkers two(2);
  test_refused();
  on_each_isa([&] {
    test_drawn_shapes(two);
    test_every_height_and_width(two);
    test_large(two);
    test_rows(two);
    test_payload();
  });
  return check_result();
}
