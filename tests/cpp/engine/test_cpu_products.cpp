// The CPU engine's matrix products, compared with sums in double precision: tails of every size,
// with and without scratch, bias, clamp and an operation after each block. The bits are the same
// with any number of threads.
#include <cstring>
#include <limits>

#include "cpu_kernels.h"
#include "rushlight/kernel/loops/half.h"

using namespace rushlight;
using namespace rushlight::engine;
using namespace rushlight::test;

namespace {

struct Case {
  int64_t rows, depth, columns;
  int64_t a_gap, c_gap;  // between rows
  bool bias, clamp, block;
  PanelType type = PanelType::Float32;
  int64_t group = 0;  // terms that share a scale, for integers; 0: all
  bool scales_as_halves = false;
  bool residual = false;

  bool halves() const { return type == PanelType::BFloat16 || type == PanelType::Float16; }
  int32_t bits() const { return type == PanelType::Int4 ? 4 : 8; }
  int64_t groups() const { return group == 0 ? 1 : depth / group; }
};

uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

float upper_half(float x) {
  const uint32_t bits = bits_of(x) & 0xffff0000u;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}

// Integers in the layout of panels (kernels/dot_product.h), and the numbers that they represent.
struct Integers {
  Guarded<uint8_t> panels;
  Guarded<float> scales;
  Guarded<uint16_t> halves;

  explicit Integers(const Case& test)
      : panels(panels_of(test.columns) * panel_quads(test.depth, test.bits()) * kQuadBytes),
        scales(panels_of(test.columns) * kPanel * test.groups()),
        halves(panels_of(test.columns) * kPanel * test.groups()) {}

  void draw(const Case& test, Random& random, std::vector<float>& b) {
    std::memset(panels.data(), 0, panels.size());
    for (size_t i = 0; i < scales.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      scales.data()[at] = upper_half(random.real(1e-3f, 2e-2f));
      halves.data()[at] = static_cast<uint16_t>(bits_of(scales[at]) >> 16);
    }
    const int32_t bits = test.bits();
    const int64_t together = bits == 8 ? kQuad : kOct;
    const int64_t most = bits == 8 ? 127 : 7;
    for (int64_t k = 0; k < test.depth; ++k) {
      const int64_t group = test.group == 0 ? 0 : k / test.group;
      for (int64_t j = 0; j < test.columns; ++j) {
        const int64_t weight = random.whole(-most - 1, most);
        const int64_t quad = j / kPanel * panel_quads(test.depth, bits) + k / together;
        uint8_t& byte = panels.data()[quad * kQuadBytes + j % kPanel * kQuad + k % kQuad];
        if (bits == 8) {
          byte = static_cast<uint8_t>(weight);
        } else {
          byte = static_cast<uint8_t>(byte | (weight & 15) << (k % kOct >= kQuad ? 4 : 0));
        }
        const int64_t scale = (j / kPanel * test.groups() + group) * kPanel + j % kPanel;
        b[static_cast<size_t>(k * test.columns + j)] = static_cast<float>(weight) * scales[scale];
      }
    }
  }
};

struct Operands {
  std::vector<float> a, b, bias, residual;
  Guarded<float> panels;
  Guarded<uint16_t> halves;
  Integers integers;
  Operands(const Case& test, Random& random)
      : a(random.reals(test.rows * (test.depth + test.a_gap), -1, 1)),
        b(random.reals(test.depth * test.columns, -1, 1)),
        bias(bias_of(random, test.columns)),
        residual(random.reals(test.rows * test.columns)),
        panels(panels_of(test.columns) * kPanel * test.depth),
        halves(panels_of(test.columns) * kPanel * test.depth),
        integers(test) {
    if (has_scales(test.type)) integers.draw(test, random, b);
    for (float& x : b) {
      if (test.type == PanelType::BFloat16) x = upper_half(x);
      if (test.type == PanelType::Float16) x = std::nearbyint(x * 1024) / 1024;
    }
  }
};

std::vector<float> run(const Case& test, Operands& operands, bool scratch, Workers* workers) {
  Product p;
  p.rows = test.rows;
  p.depth = test.depth;
  p.columns = test.columns;
  p.a = operands.a.data();
  p.a_stride = test.depth + test.a_gap;
  p.panels = operands.panels.data();
  p.type = test.type;
  if (test.halves()) p.panels = operands.halves.data();
  if (has_scales(test.type)) {
    const Integers& integers = operands.integers;
    p.panels = integers.panels.data();
    p.scales = {test.groups(), integers.scales.data(),
                test.scales_as_halves ? ScaleType::BFloat16 : ScaleType::Float32};
    if (test.scales_as_halves) p.scales.scales = integers.halves.data();
  }
  p.c_stride = test.columns + test.c_gap;
  const int64_t size = test.rows == 0 ? 0 : (test.rows - 1) * p.c_stride + test.columns;
  Guarded<float> c(size);
  p.c = c.data();
  if (test.bias) p.epilogue.bias = operands.bias.data();
  if (test.residual) {
    p.epilogue.residual = operands.residual.data();
    p.epilogue.residual_stride = test.columns;
  }
  if (test.clamp) {
    p.epilogue.low = -1.5f;
    p.epilogue.high = 2.0f;
  }
  const Increment increment = {p.c, p.c_stride};
  if (test.block) {
    p.epilogue.block = Increment::block;
    p.epilogue.data = &increment;
  }
  const size_t threads = workers == nullptr ? 1 : workers->count();
  const size_t bytes = scratch ? product_scratch(p, threads) : least_product_scratch(p, threads);
  std::vector<char> room(bytes);
  multiply(p, room.data(), bytes, workers);
  CHECK(c.intact());
  for (int64_t i = 0; i + 1 < test.rows; ++i) {
    for (int64_t j = test.columns; j < p.c_stride; ++j) {
      CHECK(c.untouched(i * p.c_stride + j));
    }
  }
  return std::vector<float>(c.data(), c.data() + size);
}

bool as_expected(const Case& test, const Operands& operands, const std::vector<float>& c) {
  Epilogue epilogue;
  if (test.clamp) {
    epilogue.low = -1.5f;
    epilogue.high = 2.0f;
  }
  for (int64_t i = 0; i < test.rows; ++i) {
    for (int64_t j = 0; j < test.columns; ++j) {
      Expected expected;
      if (test.bias) expected.add(operands.bias[static_cast<size_t>(j)]);
      const auto at = static_cast<size_t>(i * test.columns + j);
      if (test.residual) expected.add(operands.residual[at]);
      for (int64_t k = 0; k < test.depth; ++k) {
        const auto left = static_cast<size_t>(i * (test.depth + test.a_gap) + k);
        const auto right = static_cast<size_t>(k * test.columns + j);
        expected.add(static_cast<double>(operands.a[left]) * operands.b[right]);
      }
      float result = c[static_cast<size_t>(i * (test.columns + test.c_gap) + j)];
      if (test.block) result -= 1;
      expected.size += 1;
      if (!expected.holds(result, epilogue)) return false;
    }
  }
  return true;
}

void check_case(const Case& test, uint32_t seed, PoolWorkers& two) {
  Random random(seed);
  Operands operands(test, random);
  pack_panels(operands.b.data(), test.columns, 1, test.depth, test.columns, operands.panels.data(),
              &two);
  for (int64_t i = 0; test.halves() && i < panels_of(test.columns) * kPanel * test.depth; ++i) {
    const float number = operands.panels[i];
    operands.halves.data()[i] = test.type == PanelType::Float16
                                    ? kernels::plain::narrow_half(number).bits
                                    : kernels::plain::narrow_bfloat(number).bits;
  }
  const std::vector<float> result = run(test, operands, true, nullptr);
  const bool ok = as_expected(test, operands, result);
  if (!ok) {
    std::fprintf(stderr, "%s: %d x %d x %d, gaps %d %d\n",
                 kernels::isa_name(kernels::current_isa()), static_cast<int>(test.rows),
                 static_cast<int>(test.depth), static_cast<int>(test.columns),
                 static_cast<int>(test.a_gap), static_cast<int>(test.c_gap));
  }
  CHECK(ok);
  CHECK(run(test, operands, true, &two) == result);
  CHECK(run(test, operands, false, nullptr) == result);
  CHECK(run(test, operands, false, &two) == result);
}

void test_drawn_shapes(PoolWorkers& two) {
  Random random(7);
  for (uint32_t i = 0; i < 150; ++i) {
    Case test;
    test.rows = random.whole(0, i % 3 == 0 ? 100 : 16);
    test.depth = random.whole(0, i % 5 == 0 ? 200 : 40);
    test.columns = random.whole(i % 7 == 0 ? 0 : 1, i % 4 == 0 ? 300 : 70);
    test.a_gap = random.whole(0, 3);
    test.c_gap = random.whole(0, 2);
    test.bias = random.whole(0, 1) == 1;
    test.clamp = random.whole(0, 1) == 1;
    test.block = random.whole(0, 2) == 0;
    if (random.chance(3)) test.type = PanelType::BFloat16;
    if (random.chance(5)) test.type = PanelType::Float16;
    check_case(test, i, two);
  }
}

void test_every_height_and_width(PoolWorkers& two) {
  for (int64_t rows = 1; rows <= 30; ++rows) {
    for (int64_t columns : {1, 15, 16, 17, 32, 33, 47, 130}) {
      check_case({rows, 19, columns, 0, 0, true, false, true}, 3, two);
      for (PanelType type :
           {PanelType::BFloat16, PanelType::Float16, PanelType::Int8, PanelType::Int4}) {
        check_case({rows, 19, columns, 0, 0, true, false, true, type}, 3, two);
      }
    }
  }
}

// Large enough for several threads and several groups of rows. Rows are 4096 bytes apart.
void test_large(PoolWorkers& two) {
  check_case({150, 1024, 130, 0, 0, true, true, true}, 1, two);
  check_case({150, 1024, 130, 0, 0, true, true, true, PanelType::BFloat16}, 1, two);
  check_case({150, 1024, 130, 0, 0, true, true, true, PanelType::Float16}, 1, two);
  check_case({150, 1024, 40, 0, 0, true, true, true}, 2, two);
  check_case({1, 700, 1000, 0, 0, true, false, true}, 3, two);
  check_case({1, 700, 1000, 0, 0, true, false, true, PanelType::BFloat16}, 3, two);
  check_case({3, 300, 900, 0, 0, false, true, false}, 4, two);
  check_case({700, 300, 48, 0, 0, false, true, true}, 5, two);
  check_case({40, 70, 90, 0, 0, true, true, true, PanelType::Float32, 0, false, true}, 6, two);
}

// Depths greater than what is unpacked at once, groups that end inside of that and groups that do
// not, rows that are packed and rows that are not, and too few panels for all threads.
void test_integers(PoolWorkers& two) {
  for (PanelType type : {PanelType::Int8, PanelType::Int4}) {
    for (int64_t rows : {1, 5, 40, 600}) {
      const int64_t columns = rows == 600 ? 30 : 70;
      check_case({rows, 1024, columns, 0, 0, true, true, true, type, 32, true}, 1, two);
      check_case({rows, 600, columns, 0, 1, true, true, true, type, 24, false, true}, 2, two);
      check_case({rows, 520, columns, 1, 0, false, true, false, type, 520, false, true}, 3, two);
      check_case({rows, 523, columns, 0, 0, true, false, true, type}, 4, two);
    }
    check_case({3, 0, 20, 0, 0, true, true, true, type}, 5, two);
    check_case({30, 0, 20, 0, 0, true, true, true, type}, 6, two);
  }
}

void test_nan_stays() {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t rows : {2, 9}) {
    std::vector<float> a(static_cast<size_t>(rows) * 4, 1.0f);
    a[0] = nan;
    Guarded<float> panels(4 * kPanel, 1.0f);
    Guarded<float> c(rows * kPanel);
    Product p;
    p.rows = rows;
    p.depth = 4;
    p.columns = kPanel;
    p.a = a.data();
    p.a_stride = 4;
    p.panels = panels.data();
    p.c = c.data();
    p.c_stride = kPanel;
    p.epilogue.low = 0;
    p.epilogue.high = 3;
    multiply(p, nullptr, 0, nullptr);
    CHECK(std::isnan(c.data()[0]) && std::isnan(c.data()[kPanel - 1]));
    CHECK(c.data()[kPanel] == 3.0f);
  }
}

void test_packing(PoolWorkers& two) {
  Random random(11);
  for (int64_t depth : {1, 5, 16, 33}) {
    for (int64_t columns : {1, 7, 16, 18, 40}) {
      const std::vector<float> matrix = random.reals(depth * columns, -1, 1);
      for (bool transposed : {false, true}) {
        Guarded<float> panels(panels_of(columns) * kPanel * depth);
        pack_panels(matrix.data(), transposed ? 1 : columns, transposed ? depth : 1, depth, columns,
                    panels.data(), &two);
        CHECK(panels.intact());
        for (int64_t k = 0; k < depth; ++k) {
          for (int64_t j = 0; j < panels_of(columns) * kPanel; ++j) {
            const int64_t at = transposed ? j * depth + k : k * columns + j;
            const float wanted = j < columns ? matrix[static_cast<size_t>(at)] : 0.0f;
            CHECK(*panel_element(panels.data(), depth, k, j) == wanted);
          }
        }
      }
    }
  }
}

}  // namespace

int main() {
  PoolWorkers two(2);
  on_each_isa([&] {
    test_drawn_shapes(two);
    test_every_height_and_width(two);
    test_large(two);
    test_integers(two);
    test_nan_stays();
    test_packing(two);
  });
  return check_result();
}
