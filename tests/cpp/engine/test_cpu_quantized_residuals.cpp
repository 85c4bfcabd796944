// Products and convolutions of bytes that add a residual to their results, compared with the same
// products followed by a separate addition: equal bytes for random shapes, on every instruction set
// and with any number of threads, in separate memory or in the residual's.
#include <cstring>

#include "cpu_geometry.h"
#include "cpu_quantized.h"
#include "rushlight/engine/kernels/images/quantized_convolution.h"

using namespace rushlight;
using namespace rushlight::engine;
using namespace rushlight::test;

namespace {

using Bytes = std::vector<uint8_t>;

// Rows with `columns` elements each, `stride` apart.
struct Rows {
  int64_t count, columns, stride;
  int64_t bytes() const { return count == 0 ? 0 : (count - 1) * stride + columns; }
};

// Constants of columns, extended to whole panels, and a residual.
struct Operands {
  std::vector<int32_t> start;
  std::vector<float> multipliers;
  Rows rows;       // of the residual
  Bytes residual;  // exactly the bytes of its rows
  QuantizedResults results;

  Operands(Random& random, int64_t count, int64_t columns, int64_t gap)
      : start(static_cast<size_t>(panels_of(columns) * kPanel)),
        multipliers(start.size()),
        rows{count, columns, columns + gap},
        residual(bytes_of(random, rows.bytes())) {
    for (int64_t j = 0; j < columns; ++j) {
      start[static_cast<size_t>(j)] = static_cast<int32_t>(random.whole(-20000, 20000));
      float& multiplier = multipliers[static_cast<size_t>(j)];
      multiplier = std::exp2(random.real(-14, -6));
      if (random.chance(40)) multiplier = random.chance(2) ? kNotANumber : 1e30f;
    }
    results.start = start.data();
    results.multipliers = multipliers.data();
    results.requantize = draw_requantize(random);
    QuantizedBinary& sum = results.sum;
    sum.kind = random.chance(4) ? QuantizedBinaryKind::Subtract : QuantizedBinaryKind::Add;
    sum.a_zero_point = static_cast<int32_t>(random.whole(0, 255));
    sum.b_zero_point = static_cast<int32_t>(random.whole(0, 255));
    sum.requantize = draw_requantize(random);
    const float greatest = random.chance(4) ? 7.9f : 1;
    CHECK(set_sum(std::exp2(random.real(-9, greatest)), std::exp2(random.real(-9, greatest)), 1,
                  &sum));
  }
};

void add(const QuantizedResults& results, const Operands& operands, uint8_t* out,
         Workers* workers) {
  ByteOperands sum;
  sum.rank = 2;
  sum.sizes[0] = operands.rows.count;
  sum.sizes[1] = operands.rows.columns;
  sum.a_strides[0] = sum.out_strides[0] = results.stride;
  sum.b_strides[0] = operands.rows.stride;
  sum.a_strides[1] = sum.b_strides[1] = sum.out_strides[1] = 1;
  sum.a = sum.out = out;
  sum.b = operands.residual.data();
  combine(results.sum, sum, workers);
}

// compute(results, workers) is the product. Its results are `stride` apart.
template <typename Compute>
bool equal_bytes(const Operands& operands, int64_t stride, const Compute& compute) {
  const Rows rows = {operands.rows.count, operands.rows.columns, stride};
  bool equal = true;
  QuantizedResults results = operands.results;
  results.stride = stride;
  on_each_isa([&] {
    static PoolWorkers two(2);
    for (Workers* workers : {static_cast<Workers*>(nullptr), static_cast<Workers*>(&two)}) {
      Guarded<uint8_t> apart(rows.bytes());
      results.bytes = apart.data();
      results.residual = nullptr;
      compute(results, workers);
      add(results, operands, apart.data(), workers);
      Guarded<uint8_t> fused(rows.bytes());
      results.bytes = fused.data();
      results.residual = operands.residual.data();
      results.residual_stride = operands.rows.stride;
      compute(results, workers);
      equal = equal && apart.intact() && fused.intact() && apart == fused;
      fused.reset();
      for (int64_t i = 0; i < rows.count; ++i) {
        std::memcpy(fused.data() + i * stride, operands.residual.data() + i * operands.rows.stride,
                    static_cast<size_t>(rows.columns));
      }
      results.residual = fused.data();
      results.residual_stride = stride;
      compute(results, workers);
      equal = equal && fused.intact() && apart == fused;
    }
  });
  return equal;
}

// --- products -----------------------------------------------------------------------------------

void check_product(int64_t rows, int64_t depth, int64_t columns, Random& random) {
  const Operands operands(random, rows, columns, random.whole(0, 3));
  const Bytes a = bytes_of(random, rows * depth);
  Guarded<uint8_t> panels(panels_of(columns) * quads_of(depth) * kQuadBytes);
  for (size_t i = 0; i < panels.size(); ++i) {
    panels.data()[i] = static_cast<uint8_t>(random.whole(0, 255));
  }
  QuantizedProduct product;
  product.rows = rows;
  product.depth = product.a_stride = depth;
  product.columns = columns;
  product.a = a.data();
  product.panels = panels.data();
  const int64_t stride = columns + random.whole(0, 2);
  CHECK(equal_bytes(operands, stride, [&](const QuantizedResults& results, Workers* workers) {
    product.results = results;
    multiply(product, workers);
  }));
}

void test_products() {
  Random random(11);
  for (int i = 0; i < 150; ++i) {
    check_product(random.whole(0, i % 3 == 0 ? 100 : 16), random.whole(0, 40),
                  random.whole(1, i % 4 == 0 ? 300 : 70), random);
  }
}

void test_every_height_and_width() {
  Random random(12);
  for (int64_t rows = 1; rows <= 30; ++rows) {
    for (int64_t columns : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 64}) {
      check_product(rows, 16 + rows % 4, columns, random);
    }
  }
}

// Enough work for two threads.
void test_large_products() {
  Random random(13);
  check_product(500, 64, 256, random);
  check_product(3, 301, 900, random);
}

// --- convolutions -------------------------------------------------------------------------------

void check_convolution(const ConvGeometry& g, bool channels_first, Random& random) {
  const int64_t pixels = g.batch * g.out_height * g.out_width;
  const Operands operands(random, pixels, g.out_channels, random.whole(0, 3));
  const Bytes in = bytes_of(random, in_size(g));
  const int64_t panels = quads_of(g.in_channels / g.groups) * panels_of(g.out_channels / g.groups);
  const Bytes weights = bytes_of(random, g.groups * g.kernel_y * g.kernel_x * panels * kQuadBytes);
  QuantizedConvolution conv;
  conv.geometry = g;
  conv.padding_value = static_cast<uint8_t>(random.whole(0, 255));
  conv.in = in.data();
  conv.in_column_stride = channels_first ? 1 : g.in_channels;
  conv.in_row_stride = g.in_width * conv.in_column_stride;
  conv.in_channel_stride = channels_first ? g.in_height * g.in_width : 1;
  conv.in_batch_stride = g.in_height * g.in_width * g.in_channels;
  conv.weights = weights.data();
  std::vector<char> scratch(quantized_convolution_scratch(g, conv.in_channel_stride));
  const auto compute = [&](const QuantizedResults& results, Workers* workers) {
    conv.results = results;
    convolve(conv, scratch.data(), workers);
  };
  const bool equal = equal_bytes(operands, g.out_channels, compute);
  if (!equal) print_geometry("with a residual", g);
  CHECK(equal);
}

void test_convolutions() {
  Random random(14);
  for (int i = 0; i < 150; ++i) {
    const ConvGeometry g = drawn_dense_geometry(random, i);
    check_convolution(g, random.chance(4), random);
  }
}

}  // namespace

int main() {
  test_products();
  test_every_height_and_width();
  test_large_products();
  test_convolutions();
  return check_result();
}
