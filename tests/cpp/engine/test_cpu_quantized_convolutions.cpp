// The CPU engine's convolutions and pools of uint8, compared with sums of plain integers for random
// geometries: strides, padding, dilation, groups. The bytes are the same on every instruction set
// and with any number of threads.
#include <algorithm>

#include "cpu_geometry.h"
#include "cpu_quantized.h"
#include "rushlight/engine/kernels/images/quantized_convolution.h"

using namespace rushlight;
using namespace rushlight::engine;
using namespace rushlight::test;

namespace {

// --- convolutions -------------------------------------------------------------------------------

struct Case {
  ConvGeometry g;
  bool depthwise = false;
  bool channels_first = false;
  bool floats = false;    // results are floats
  bool extremes = false;  // all weights and bytes have the greatest magnitude
};

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Plain weights, element (o, tap, i), and their position in the packed layouts of the kernels. The
// constants of channels are extended to whole panels.
struct Weights {
  int64_t inputs, outputs, taps;  // of a group
  std::vector<int8_t> plain;
  Guarded<int8_t> packed;
  std::vector<int32_t> start;
  std::vector<float> multipliers;

  Weights(const Case& test, Random& random)
      : inputs(test.g.in_channels / test.g.groups),
        outputs(test.g.out_channels / test.g.groups),
        taps(test.g.kernel_y * test.g.kernel_x),
        plain(static_cast<size_t>(test.g.out_channels * taps * inputs)),
        packed(packed_size(test), 0),
        start(static_cast<size_t>(round_up(test.g.out_channels, kPanel))),
        multipliers(start.size()) {
    for (int8_t& w : plain) {
      w = static_cast<int8_t>(test.extremes ? -128 : random.whole(-128, 127));
    }
    for (size_t o = 0; o < static_cast<size_t>(test.g.out_channels); ++o) {
      start[o] = static_cast<int32_t>(random.whole(-20000, 20000));
      multipliers[o] = std::exp2(random.real(-14, -6));
    }
    for (int64_t o = 0; o < test.g.out_channels; ++o) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        for (int64_t i = 0; i < inputs; ++i) *place(test, o, tap, i) = at(o, tap, i);
      }
    }
  }
  int8_t at(int64_t o, int64_t tap, int64_t i) const {
    return plain[static_cast<size_t>((o * taps + tap) * inputs + i)];
  }

 private:
  int64_t packed_size(const Case& test) const {
    if (test.depthwise) return taps * round_up(test.g.out_channels, kPanel);
    return test.g.groups * taps * round_up(inputs, 4) * round_up(outputs, kPanel);
  }
  int8_t* place(const Case& test, int64_t o, int64_t tap, int64_t i) {
    if (test.depthwise) {
      return packed.data() + tap * round_up(test.g.out_channels, kPanel) + o;
    }
    const int64_t depth = taps * round_up(inputs, 4);
    const int64_t group = depth * round_up(outputs, kPanel);
    const int64_t row = tap * round_up(inputs, 4) + i;
    const int64_t column = o % outputs;
    return packed.data() + o / outputs * group + column / kPanel * kPanel * depth +
           row / 4 * 4 * kPanel + column % kPanel * 4 + row % 4;
  }
};

int64_t sum_at(const QuantizedConvolution& conv, const Weights& weights, int64_t pixel, int64_t o) {
  const ConvGeometry& g = conv.geometry;
  const int64_t n = pixel / g.out_width / g.out_height;
  const int64_t y = pixel / g.out_width % g.out_height * g.stride_y - g.pad_top;
  const int64_t x = pixel % g.out_width * g.stride_x - g.pad_left;
  int64_t sum = weights.start[static_cast<size_t>(o)];
  for (int64_t tap = 0; tap < weights.taps; ++tap) {
    const int64_t from_y = y + tap / g.kernel_x * g.dilation_y;
    const int64_t from_x = x + tap % g.kernel_x * g.dilation_x;
    const bool inside = from_y >= 0 && from_x >= 0 && from_y < g.in_height && from_x < g.in_width;
    for (int64_t i = 0; i < weights.inputs; ++i) {
      const int64_t c = o / weights.outputs * weights.inputs + i;
      const int64_t byte =
          inside ? conv.in[n * conv.in_batch_stride + from_y * conv.in_row_stride +
                           from_x * conv.in_column_stride + c * conv.in_channel_stride]
                 : conv.padding_value;
      sum += byte * weights.at(o, tap, i);
    }
  }
  return sum;
}

void run(const Case& test, QuantizedConvolution conv, void* out, Workers* workers) {
  if (test.floats) {
    conv.results.floats = static_cast<float*>(out);
  } else {
    conv.results.bytes = static_cast<uint8_t*>(out);
  }
  const size_t bytes = test.depthwise
                           ? quantized_depthwise_scratch(conv.geometry)
                           : quantized_convolution_scratch(conv.geometry, conv.in_channel_stride);
  std::vector<char> scratch(bytes, '\x7f');  // garbage
  if (test.depthwise) {
    convolve_depthwise(conv, scratch.data(), workers);
  } else {
    convolve(conv, scratch.data(), workers);
  }
}

void check_case(const Case& test, Random& random) {
  const ConvGeometry& g = test.g;
  const Weights weights(test, random);
  std::vector<uint8_t> in = bytes_of(random, in_size(g));
  if (test.extremes) std::fill(in.begin(), in.end(), uint8_t{255});
  QuantizedConvolution conv;
  conv.geometry = g;
  conv.padding_value = static_cast<uint8_t>(random.whole(0, 255));
  conv.in = in.data();
  conv.in_column_stride = g.in_channels;
  conv.in_row_stride = g.in_width * g.in_channels;
  if (test.channels_first) {
    conv.in_channel_stride = g.in_height * g.in_width;
    conv.in_column_stride = 1;
    conv.in_row_stride = g.in_width;
  }
  conv.in_batch_stride = g.in_height * g.in_width * g.in_channels;
  conv.weights = weights.packed.data();
  conv.results.start = weights.start.data();
  conv.results.multipliers = weights.multipliers.data();
  conv.results.requantize = draw_requantize(random);
  conv.results.stride = g.out_channels;
  conv.results.epilogue.low = -1.5f;
  std::vector<int32_t> expected(static_cast<size_t>(out_size(g)));
  std::vector<float> expected_floats(expected.size());
  for (int64_t i = 0; i < out_size(g); ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t sum = sum_at(conv, weights, i / g.out_channels, i % g.out_channels);
    const float multiplier = weights.multipliers[static_cast<size_t>(i % g.out_channels)];
    expected[at] = requantized(sum, multiplier, conv.results.requantize);
    expected_floats[at] = std::fmax(static_cast<float>(sum) * multiplier, -1.5f);
  }
  const auto check = [&](const auto* out, const auto& wanted) {
    int64_t wrong = 0;
    for (size_t i = 0; i < wanted.size(); ++i) wrong += out[i] != wanted[i];
    if (wrong != 0) print_geometry(test.depthwise ? "depthwise" : "dense", g);
    CHECK(wrong == 0);
  };
  const auto compute = [&](auto* out, Workers* workers) { run(test, conv, out, workers); };
  if (test.floats) {
    everywhere<float>(out_size(g), compute, [&](const float* out) { check(out, expected_floats); });
  } else {
    everywhere<uint8_t>(out_size(g), compute, [&](const uint8_t* out) { check(out, expected); });
  }
}

void test_depthwise() {
  Random random(3);
  for (int i = 0; i < 150; ++i) {
    Case test;
    test.depthwise = true;
    test.g = drawn_geometry(random, 90);
    ConvGeometry& g = test.g;
    if (i % 5 == 0) g.kernel_y = random.whole(5, 9);
    if (i % 7 == 0) g.stride_x = random.whole(4, 90);
    if (i % 11 == 0) g.dilation_x = random.whole(3, 90);
    g.out_height = out_of(g.in_height, g.kernel_y, g.stride_y, g.dilation_y, g.pad_top);
    g.out_width = out_of(g.in_width, g.kernel_x, g.stride_x, g.dilation_x, g.pad_left);
    g.groups = g.in_channels = random.whole(1, i % 3 == 0 ? 80 : 30);
    g.out_channels = g.in_channels * (random.chance(4) ? random.whole(2, 3) : 1);
    test.floats = random.chance(5);
    test.extremes = random.chance(10);
    check_case(test, random);
  }
}

// Widths that tiles fit, and neighbouring widths.
void test_network_depthwise() {
  Random random(4);
  for (int64_t size : {7, 8, 14, 15, 28, 33, 65}) {
    for (int64_t kernel : {3, 5, 7}) {
      for (int64_t stride : {1, 2}) {
        Case test;
        test.depthwise = true;
        ConvGeometry& g = test.g;
        g.in_height = g.in_width = size;
        g.groups = g.in_channels = g.out_channels = size > 28 ? 16 : 144;
        g.kernel_y = g.kernel_x = kernel;
        g.stride_y = g.stride_x = stride;
        g.pad_top = g.pad_left = kernel / 2;
        g.out_height = g.out_width = out_of(size, kernel, stride, 1, kernel / 2);
        check_case(test, random);
      }
    }
  }
}

void test_dense() {
  Random random(7);
  for (int i = 0; i < 200; ++i) {
    Case test;
    test.g = drawn_dense_geometry(random, i);
    test.channels_first = random.chance(4);
    test.floats = random.chance(5);
    test.extremes = random.chance(10);
    check_case(test, random);
  }
}

// First layers, widths that tiles fit, strided 1 by 1.
void test_network_dense() {
  Random random(8);
  for (int64_t size : {7, 14, 15, 28}) {
    for (int64_t channels : {3, 20, 32}) {
      for (int64_t kernel : {1, 3, 7}) {
        for (int64_t stride : {1, 2}) {
          Case test;
          ConvGeometry& g = test.g;
          g.in_height = g.in_width = size;
          g.in_channels = channels;
          g.out_channels = 40;
          g.kernel_y = g.kernel_x = kernel;
          g.stride_y = g.stride_x = stride;
          g.pad_top = g.pad_left = kernel / 2;
          g.out_height = g.out_width = out_of(size, kernel, stride, 1, kernel / 2);
          test.channels_first = channels == 3;
          check_case(test, random);
        }
      }
    }
  }
}

// --- pools --------------------------------------------------------------------------------------

int32_t pooled(const QuantizedPooling& p, const std::vector<uint8_t>& in, int64_t n, int64_t y,
               int64_t x, int64_t c) {
  const ConvGeometry& g = p.geometry;
  int64_t sum = 0, inside = 0, padded = 0;
  int32_t most = 0;
  for (int64_t tap = 0; tap < g.kernel_y * g.kernel_x; ++tap) {
    const int64_t from_y = y * g.stride_y - g.pad_top + tap / g.kernel_x * g.dilation_y;
    const int64_t from_x = x * g.stride_x - g.pad_left + tap % g.kernel_x * g.dilation_x;
    if (from_y < g.in_height + g.pad_top && from_x < g.in_width + g.pad_left) ++padded;
    if (from_y < 0 || from_x < 0 || from_y >= g.in_height || from_x >= g.in_width) continue;
    ++inside;
    const int64_t pixel = (n * g.in_height + from_y) * g.in_width + from_x;
    const int32_t byte = in[static_cast<size_t>(pixel * g.in_channels + c)];
    sum += byte - p.in_zero_point;
    most = std::max(most, byte);
  }
  if (p.kind == Pool::Max) return most;
  const int64_t count = p.divisor != 0 ? p.divisor : (p.count_padding ? padded : inside);
  return requantized(sum, p.multiplier / static_cast<float>(count), p.requantize);
}

void check_pool(QuantizedPooling& p, Random& random) {
  const ConvGeometry& g = p.geometry;
  const std::vector<uint8_t> in = bytes_of(random, in_size(g));
  p.in = in.data();
  everywhere<uint8_t>(
      out_size(g),
      [&](uint8_t* out, Workers* workers) {
        p.out = out;
        pool(p, workers);
      },
      [&](const uint8_t* out) {
        int64_t wrong = 0;
        for (int64_t i = 0; i < out_size(g); ++i) {
          const int64_t pixel = i / g.out_channels;
          const int64_t n = pixel / g.out_width / g.out_height;
          wrong += out[i] != pooled(p, in, n, pixel / g.out_width % g.out_height,
                                    pixel % g.out_width, i % g.out_channels);
        }
        if (wrong != 0) print_geometry(p.kind == Pool::Max ? "max" : "average", g);
        CHECK(wrong == 0);
      });
}

void test_pools() {
  Random random(5);
  for (int i = 0; i < 120; ++i) {
    QuantizedPooling p;
    p.geometry = drawn_geometry(random, 20);
    ConvGeometry& g = p.geometry;
    g.pad_top = std::min(g.pad_top, g.kernel_y / 2);
    g.pad_left = std::min(g.pad_left, g.kernel_x / 2);
    p.kind = i % 2 == 0 ? Pool::Max : Pool::Average;
    if (p.kind == Pool::Average) g.dilation_y = g.dilation_x = 1;
    g.out_height = out_of(g.in_height, g.kernel_y, g.stride_y, g.dilation_y, g.pad_top);
    g.out_width = out_of(g.in_width, g.kernel_x, g.stride_x, g.dilation_x, g.pad_left);
    g.in_channels = g.out_channels = random.whole(1, i % 5 == 0 ? 300 : 40);
    p.count_padding = random.chance(2);
    p.divisor = random.chance(3) ? 5 : 0;
    p.in_zero_point = static_cast<int32_t>(random.whole(0, 255));
    p.multiplier = std::exp2(random.real(-4, 4));
    p.requantize = draw_requantize(random);
    check_pool(p, random);
  }
}

// More terms in a row than a 16-bit sum can hold, all of the greatest magnitude.
void test_global_average() {
  Random random(6);
  for (int64_t width : {7, 256, 257, 600}) {
    QuantizedPooling p;
    ConvGeometry& g = p.geometry;
    g.in_height = g.kernel_y = 3;
    g.in_width = g.kernel_x = width;
    g.in_channels = g.out_channels = 70;
    p.kind = Pool::Average;
    p.requantize.zero_point = 3;
    check_pool(p, random);
    const std::vector<uint8_t> in(static_cast<size_t>(in_size(g)), 255);
    Guarded<uint8_t> out(70);
    p.in = in.data();
    p.out = out.data();
    p.requantize.zero_point = 0;
    pool(p, nullptr);
    CHECK(out.intact() && out[0] == 255 && out[69] == 255);
  }
}

}  // namespace

int main() {
  test_depthwise();
  test_network_depthwise();
  test_dense();
  test_network_dense();
  test_pools();
  test_global_average();
  return check_result();
}
