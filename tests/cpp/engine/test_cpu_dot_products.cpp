// The CPU engine's products of bytes, compared bit for bit with sums of integers on each
// instruction set: tails of every size, extremes, requantised results and float results; rows that
// are quantised and converted.
#include <cstring>
#include <initializer_list>

#include "cpu_kernels.h"
#include "rushlight/engine/kernels/products/dot_product.h"

using namespace rushlight;
using namespace rushlight::engine;
using namespace rushlight::test;

namespace {

enum class Output { Bytes, Numbers, Dynamic };

struct Case {
  int64_t rows, depth, columns;
  Output output = Output::Bytes;
  int64_t a_gap = 0, c_gap = 0;  // between rows
  bool extremes = false;         // all terms have the greatest magnitude
  bool has_epilogue = false;     // float results get a bias and a residual
  bool clamps = false;           // and are clamped
  int32_t bits = 8;              // of weights; with 4, results are Dynamic
  int64_t group = 0;             // terms that share a scale
  bool halves = false;           // scales of groups are bfloat16
};

struct Operands {
  std::vector<uint8_t> a;  // exactly the bytes of the rows
  std::vector<int8_t> b;   // [depth, columns]
  Guarded<int8_t> panels;
  std::vector<int32_t> start;
  std::vector<float> multipliers, bias, residual, row_scales, shares;
  std::vector<float> scales;  // of each panel [groups, kPanel]
  std::vector<uint16_t> half_scales;
  Requantize requantize;

  Operands(const Case& test, Random& random)
      : a(size_of(test.rows, test.depth, test.a_gap)),
        b(static_cast<size_t>(test.depth * test.columns)),
        panels(panels_of(test.columns) * panel_quads(test.depth, test.bits) * 64, 0),
        start(whole(test.columns)),
        multipliers(whole(test.columns)),
        bias(bias_of(random, test.columns)),
        residual(random.reals(test.rows * test.columns)),
        row_scales(static_cast<size_t>(2 * test.rows)) {
    const bool greatest = random.chance(2);
    for (uint8_t& x : a) {
      x = static_cast<uint8_t>(test.extremes ? (greatest ? 255 : 0) : random.whole(0, 255));
    }
    const int64_t least = test.bits == 8 ? -128 : -8;
    for (int8_t& x : b) x = byte_of(test.extremes ? least : random.whole(least, -1 - least));
    pack(test);
    draw_groups(test, random);
    for (int64_t j = 0; j < test.columns; ++j) {
      const auto at = static_cast<size_t>(j);
      start[at] = static_cast<int32_t>(random.whole(-3000, 3000));
      if (test.output == Output::Dynamic) {
        start[at] = 0;
        for (int64_t k = 0; k < test.depth; ++k) {
          start[at] += b[static_cast<size_t>(k * test.columns + j)];
        }
      }
      // Sums are about 8000 times the root of the depth. Some multipliers give halves.
      multipliers[at] = random.chance(2) ? random.real(0, 0.01f) : 1.0f / 512;
      if (test.output == Output::Bytes && random.chance(20)) {
        constexpr float kSpecial[] = {kNotANumber, kInfinity, -kInfinity, 1e30f, -1e30f, -0.01f};
        multipliers[at] = kSpecial[random.whole(0, 5)];
      }
    }
    for (int64_t i = 0; i < test.rows; ++i) {
      row_scales[static_cast<size_t>(2 * i)] = random.real(0, 1);
      row_scales[static_cast<size_t>(2 * i + 1)] = static_cast<float>(random.whole(0, 255));
    }
    requantize.zero_point = static_cast<int32_t>(random.whole(0, 255));
    requantize.low = static_cast<int32_t>(random.chance(2) ? 0 : random.whole(0, 255));
    requantize.high = static_cast<int32_t>(random.whole(requantize.low, 255));
  }

  void pack(const Case& test) {
    const int64_t quads = panel_quads(test.depth, test.bits);
    for (int64_t k = 0; k < test.depth; ++k) {
      for (int64_t j = 0; j < test.columns; ++j) {
        const int8_t x = b[static_cast<size_t>(k * test.columns + j)];
        const int64_t in_column = j % 16 * 4 + k % 4;
        if (test.bits == 8) {
          panels.data()[((j / 16) * quads + k / 4) * 64 + in_column] = x;
        } else {
          int8_t& both = panels.data()[((j / 16) * quads + k / 8) * 64 + in_column];
          const int nibble = (x & 15) << (k % 8 < 4 ? 0 : 4);
          both = byte_of(static_cast<uint8_t>(both) | nibble);
        }
      }
    }
  }

  size_t scale_at(const Case& test, int64_t group, int64_t j) const {
    return static_cast<size_t>((j / 16 * (test.depth / test.group) + group) * 16 + j % 16);
  }
  void draw_groups(const Case& test, Random& random) {
    if (test.group == 0) return;
    scales = random.reals(panels_of(test.columns) * kPanel * (test.depth / test.group), 0, 0.01f);
    half_scales.resize(scales.size());
    for (size_t i = 0; i < scales.size(); ++i) {
      uint32_t bits;
      std::memcpy(&bits, &scales[i], sizeof(bits));
      bits &= 0xffff0000u;
      half_scales[i] = static_cast<uint16_t>(bits >> 16);
      if (test.halves) std::memcpy(&scales[i], &bits, sizeof(bits));
    }
    shares.resize(whole(test.columns));
    for (int64_t j = 0; j < test.columns; ++j) {
      double share = 0;
      for (int64_t k = 0; k < test.depth; ++k) {
        share += static_cast<double>(scales[scale_at(test, k / test.group, j)]) *
                 b[static_cast<size_t>(k * test.columns + j)];
      }
      shares[static_cast<size_t>(j)] = static_cast<float>(share);
    }
  }

  static size_t size_of(int64_t rows, int64_t width, int64_t gap) {
    return static_cast<size_t>(rows == 0 ? 0 : (rows - 1) * (width + gap) + width);
  }
  static size_t whole(int64_t columns) { return static_cast<size_t>(panels_of(columns) * kPanel); }
  static int8_t byte_of(int64_t x) { return static_cast<int8_t>(x & 0xff); }

  int64_t sum(const Case& test, int64_t i, int64_t j) const {
    int64_t sum = 0;
    for (int64_t k = 0; k < test.depth; ++k) {
      sum += int64_t{a[static_cast<size_t>(i * (test.depth + test.a_gap) + k)]} *
             b[static_cast<size_t>(k * test.columns + j)];
    }
    return sum;
  }
};

// `sum` may exceed 32 bits by a column's start value; then it wraps around. NaN, from a NaN
// multiplier, becomes the least integer.
uint8_t requantized(int64_t sum, float multiplier, const Requantize& r) {
  const float number = static_cast<float>(static_cast<int32_t>(sum)) * multiplier;
  if (std::isnan(number)) return static_cast<uint8_t>(r.low);
  const double q = std::nearbyint(static_cast<double>(number)) + r.zero_point;
  return static_cast<uint8_t>(q < r.low ? r.low : q > r.high ? r.high : q);
}

QuantizedProduct product_of(const Case& test, const Operands& operands) {
  QuantizedProduct p;
  p.rows = test.rows;
  p.depth = test.depth;
  p.columns = test.columns;
  p.a = operands.a.data();
  p.a_stride = test.depth + test.a_gap;
  p.panels = operands.panels.data();
  p.bits = test.bits;
  if (test.group == 0) {
    p.results.start = operands.start.data();
    p.results.multipliers = operands.multipliers.data();
  } else {
    p.groups.groups = test.depth / test.group;
    if (test.halves) p.groups.type = ScaleType::BFloat16;
    p.groups.scales = operands.scales.data();
    if (test.halves) p.groups.scales = operands.half_scales.data();
    p.results.shares = operands.shares.data();
  }
  p.results.stride = test.columns + test.c_gap;
  if (test.output == Output::Dynamic) p.results.row_scales = operands.row_scales.data();
  if (test.has_epilogue) {
    p.results.epilogue.bias = operands.bias.data();
    p.results.epilogue.residual = operands.residual.data();
    p.results.epilogue.residual_stride = test.columns;
  }
  if (test.clamps) {
    p.results.epilogue.low = -40;
    p.results.epilogue.high = 100;
  }
  return p;
}

void check_bytes(const Case& test, const Operands& operands, PoolWorkers& two) {
  QuantizedProduct p = product_of(test, operands);
  p.results.requantize = operands.requantize;
  const auto size = static_cast<int64_t>(Operands::size_of(test.rows, test.columns, test.c_gap));
  Guarded<uint8_t> alone(size);
  Guarded<uint8_t> shared(size);
  p.results.bytes = alone.data();
  multiply(p, nullptr);
  p.results.bytes = shared.data();
  multiply(p, &two);
  CHECK(alone.intact() && shared.intact() && alone == shared);
  for (int64_t i = 0; i < test.rows; ++i) {
    for (int64_t j = 0; j < test.columns + (i + 1 < test.rows ? test.c_gap : 0); ++j) {
      const int64_t at = i * p.results.stride + j;
      const auto column = static_cast<size_t>(j);
      CHECK(j >= test.columns
                ? alone.untouched(at)
                : alone[at] == requantized(operands.sum(test, i, j) + operands.start[column],
                                           operands.multipliers[column], operands.requantize));
    }
  }
}

// A result of groups, and the sum of the magnitudes of its terms.
double sum_of_groups(const Case& test, const Operands& o, int64_t i, int64_t j, double* size) {
  double sum = 0;
  for (int64_t k = 0; k < test.depth; ++k) {
    const double scale = static_cast<double>(o.scales[o.scale_at(test, k / test.group, j)]);
    const double term = scale * o.b[static_cast<size_t>(k * test.columns + j)];
    sum += term * o.a[static_cast<size_t>(i * (test.depth + test.a_gap) + k)];
    *size += std::fabs(term) * 255;
  }
  return sum;
}

double number_of(const Case& test, const Operands& o, int64_t i, int64_t j, double* size) {
  const auto row = static_cast<size_t>(i);
  const auto column = static_cast<size_t>(j);
  const auto scale = static_cast<double>(o.row_scales[2 * row]);
  const auto zero_point = static_cast<double>(o.row_scales[2 * row + 1]);
  double number;
  if (test.group != 0) {
    number = scale * (sum_of_groups(test, o, i, j, size) -
                      zero_point * static_cast<double>(o.shares[column]));
    *size *= scale;
  } else {
    const auto start = static_cast<double>(o.start[column]);
    const auto sum = static_cast<double>(o.sum(test, i, j));
    number = (sum + start) * o.multipliers[column];
    if (test.output == Output::Dynamic) {
      number = (sum - zero_point * start) * scale * o.multipliers[column];
    }
    *size = std::fabs(number);
  }
  if (test.has_epilogue) {
    number += o.bias[column] + o.residual[static_cast<size_t>(i * test.columns + j)];
  }
  if (!test.clamps) return number;
  return number < -40 ? -40 : number > 100 ? 100 : number;
}

void check_numbers(const Case& test, const Operands& operands, PoolWorkers& two) {
  QuantizedProduct p = product_of(test, operands);
  const auto size = static_cast<int64_t>(Operands::size_of(test.rows, test.columns, test.c_gap));
  Guarded<float> alone(size);
  Guarded<float> shared(size);
  Increment increment = {alone.data(), p.results.stride};
  p.results.epilogue.block = Increment::block;
  p.results.epilogue.data = &increment;
  p.results.floats = alone.data();
  multiply(p, nullptr);
  increment.c = p.results.floats = shared.data();
  multiply(p, &two);
  CHECK(alone.intact() && shared.intact() && alone == shared);
  for (int64_t i = 0; i < test.rows; ++i) {
    for (int64_t j = 0; j < test.columns; ++j) {
      double size = 0;
      const double wanted = number_of(test, operands, i, j, &size) + 1;
      CHECK(close(alone[i * p.results.stride + j], wanted, 1e-6, size + 4));
    }
  }
}

void check_case(const Case& test, uint32_t seed, PoolWorkers& two) {
  Random random(seed);
  const Operands operands(test, random);
  if (test.output == Output::Bytes) {
    check_bytes(test, operands, two);
  } else {
    check_numbers(test, operands, two);
  }
}

void test_drawn_shapes(PoolWorkers& two) {
  Random random(7);
  for (uint32_t i = 0; i < 150; ++i) {
    Case test;
    test.rows = random.whole(0, i % 3 == 0 ? 100 : 16);
    test.depth = random.whole(0, i % 5 == 0 ? 200 : 40);
    test.columns = random.whole(i % 7 == 0 ? 0 : 1, i % 4 == 0 ? 300 : 70);
    test.output = static_cast<Output>(random.whole(0, 2));
    test.a_gap = random.whole(0, 3);
    test.c_gap = random.whole(0, 2);
    test.extremes = random.chance(3);
    test.has_epilogue = random.chance(2);
    test.clamps = random.chance(2);
    check_case(test, i, two);
  }
}

Case of_nibbles(int64_t rows, int64_t depth, int64_t columns, int64_t group) {
  Case test = {rows, depth, columns, Output::Dynamic};
  test.bits = 4;
  test.group = group;
  return test;
}

void test_drawn_nibbles(PoolWorkers& two) {
  Random random(8);
  for (uint32_t i = 0; i < 150; ++i) {
    const int64_t group = random.chance(2) ? 0 : 8 * random.whole(1, 9);
    const int64_t depth = group == 0 ? random.whole(0, 100) : group * random.whole(0, 5);
    Case test = of_nibbles(random.whole(0, 30), depth, random.whole(0, 70), group);
    if (depth == 0) test.group = 0;
    test.a_gap = random.whole(0, 3);
    test.c_gap = random.whole(0, 2);
    test.extremes = random.chance(3);
    test.has_epilogue = random.chance(2);
    test.clamps = random.chance(2);
    test.halves = random.chance(2);
    check_case(test, i, two);
  }
}

void test_every_height_and_width(PoolWorkers& two) {
  for (int64_t rows = 1; rows <= 30; ++rows) {
    for (int64_t columns : {1, 15, 16, 17, 32, 33, 47}) {
      for (Output output : {Output::Bytes, Output::Numbers, Output::Dynamic}) {
        check_case({rows, 16 + rows % 4, columns, output}, 3, two);
      }
      check_case(of_nibbles(rows, 64, columns, 0), 4, two);
      check_case(of_nibbles(rows, 64, columns, 32), 5, two);
    }
  }
}

// Large enough for several threads and several groups of rows. Rows are 4096 bytes apart.
void test_large(PoolWorkers& two) {
  check_case({150, 4096, 50}, 1, two);
  check_case({400, 2048, 20}, 2, two);
  check_case({1, 700, 1000}, 3, two);
  check_case({3, 301, 900, Output::Dynamic}, 4, two);
  check_case({700, 300, 48, Output::Numbers}, 5, two);
  check_case(of_nibbles(150, 2048, 50, 32), 6, two);
  check_case(of_nibbles(1, 768, 1000, 32), 7, two);
  check_case(of_nibbles(4, 768, 1000, 128), 8, two);
}

// Sums that just fit 32 bits.
void test_longest_sums(PoolWorkers& two) {
  for (int64_t rows : {1, 8}) {
    Case test = {rows, kMaxQuantizedTerms, 3};
    test.extremes = true;
    check_case(test, 1, two);
    check_case(test, 2, two);
    test = of_nibbles(rows, kMaxQuantizedTerms, 3, 0);
    test.extremes = true;
    check_case(test, 1, two);
    check_case(test, 2, two);
  }
}

}  // namespace

int main() {
  PoolWorkers two(2);
  on_each_isa([&] {
    test_drawn_shapes(two);
    test_drawn_nibbles(two);
    test_every_height_and_width(two);
    test_large(two);
    test_longest_sums(two);
  });
  return check_result();
}
