// The CPU engine's convolutions and pools, compared with sums in double precision for random
// geometries: strides, padding, dilation, groups, both layouts of the input. The bits are the same
// with any number of threads.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu_geometry.h"
#include "cpu_kernels.h"
#include "rushlight/engine/kernels/images/convolution.h"

using namespace rushlight;
using namespace rushlight::engine;
using namespace rushlight::test;

namespace {

enum class Kind { Dense, Depthwise, Transposed, Winograd };

struct Case {
  Kind kind;
  ConvGeometry g;
  bool channels_first, bias, clamp, block;
};

// Plain weights, element (o, i, y, x), and their position in the packed layouts of the kernels.
struct Weights {
  std::vector<float> plain;
  Guarded<float> packed;
  int64_t inputs, outputs;  // of a group

  Weights(const Case& test, Random& random)
      : plain(),
        packed(packed_size(test)),
        inputs(test.g.in_channels / test.g.groups),
        outputs(test.g.out_channels / test.g.groups) {
    const ConvGeometry& g = test.g;
    plain = random.reals(g.out_channels * inputs * g.kernel_y * g.kernel_x, -1, 1);
    std::fill_n(packed.data(), packed.size(), 0.0f);
    if (test.kind == Kind::Winograd) pack_winograd(g);
    for (int64_t o = 0; o < g.out_channels && test.kind != Kind::Winograd; ++o) {
      for (int64_t i = 0; i < inputs; ++i) {
        for (int64_t tap = 0; tap < g.kernel_y * g.kernel_x; ++tap) {
          *place(test, o, i, tap) = at(g, o, i, tap);
        }
      }
    }
  }
  float at(const ConvGeometry& g, int64_t o, int64_t i, int64_t tap) const {
    return plain[static_cast<size_t>((o * inputs + i) * g.kernel_y * g.kernel_x + tap)];
  }

 private:
  static int64_t packed_size(const Case& test) {
    const ConvGeometry& g = test.g;
    const int64_t taps = g.kernel_y * g.kernel_x;
    if (test.kind == Kind::Depthwise) return taps * panels_of(g.out_channels) * kPanel;
    const int64_t outputs = g.out_channels / g.groups;
    if (test.kind == Kind::Winograd) return kWinogradProducts * g.in_channels * g.out_channels;
    if (test.kind == Kind::Dense) return g.in_channels * taps * panels_of(outputs) * kPanel;
    return g.in_channels * panels_of(taps * outputs) * kPanel;
  }
  // The taps as polynomials in y and x, at the points 0, +-sqrt(1/2), +-sqrt(2) and infinity,
  // divided by the distances to the other points.
  void pack_winograd(const ConvGeometry& g) {
    double at_point[6][3] = {{1, 0, 0}, {}, {}, {}, {}, {0, 0, 1}};
    for (int p = 1; p < 5; ++p) {
      const double point = (p % 2 == 1 ? 1 : -1) * std::sqrt(p < 3 ? 0.5 : 2.0);
      for (int k = 0; k < 3; ++k) at_point[p][k] = std::pow(point, k) / (p < 3 ? -1.5 : 6.0);
    }
    for (int64_t o = 0; o < g.out_channels; ++o) {
      for (int64_t i = 0; i < inputs; ++i) {
        for (int64_t product = 0; product < kWinogradProducts; ++product) {
          double value = 0;
          for (int64_t tap = 0; tap < 9; ++tap) {
            value += at_point[product / 6][tap / 3] * at_point[product % 6][tap % 3] *
                     static_cast<double>(at(g, o, i, tap));
          }
          float* const matrix = packed.data() + product * inputs * g.out_channels;
          *panel_element(matrix, inputs, i, o) = static_cast<float>(value);
        }
      }
    }
  }
  float* place(const Case& test, int64_t o, int64_t i, int64_t tap) {
    const ConvGeometry& g = test.g;
    const int64_t taps = g.kernel_y * g.kernel_x;
    if (test.kind == Kind::Depthwise) {
      return packed.data() + tap * panels_of(g.out_channels) * kPanel + o;
    }
    float* group = packed.data() + o / outputs * (packed.size() / g.groups);
    if (test.kind == Kind::Dense) {
      return panel_element(group, taps * inputs, tap * inputs + i, o % outputs);
    }
    return panel_element(group, inputs, i, tap * outputs + o % outputs);
  }
};

// Element (n, y, x, c) of the input; 0 outside.
struct Input {
  const std::vector<float>& values;
  const Case& test;
  float at(int64_t n, int64_t y, int64_t x, int64_t c) const {
    const ConvGeometry& g = test.g;
    if (y < 0 || x < 0 || y >= g.in_height || x >= g.in_width) return 0;
    const int64_t place = test.channels_first
                              ? ((n * g.in_channels + c) * g.in_height + y) * g.in_width + x
                              : ((n * g.in_height + y) * g.in_width + x) * g.in_channels + c;
    return values[static_cast<size_t>(place)];
  }
};

// The inputs of one result of a convolution or a transposed convolution.
Expected expected_at(const Input& in, const Weights& weights, int64_t n, int64_t y, int64_t x,
                     int64_t o) {
  const ConvGeometry& g = in.test.g;
  const int64_t first = o / weights.outputs * weights.inputs;
  Expected expected;
  for (int64_t tap = 0; tap < g.kernel_y * g.kernel_x; ++tap) {
    int64_t from_y = y * g.stride_y - g.pad_top + tap / g.kernel_x * g.dilation_y;
    int64_t from_x = x * g.stride_x - g.pad_left + tap % g.kernel_x * g.dilation_x;
    if (in.test.kind == Kind::Transposed) {
      from_y = y + g.pad_top - tap / g.kernel_x * g.dilation_y;
      from_x = x + g.pad_left - tap % g.kernel_x * g.dilation_x;
      if (from_y % g.stride_y != 0 || from_x % g.stride_x != 0) continue;
      from_y /= g.stride_y;
      from_x /= g.stride_x;
    }
    for (int64_t i = 0; i < weights.inputs; ++i) {
      expected.add(static_cast<double>(in.at(n, from_y, from_x, first + i)) *
                   weights.at(g, o, i, tap));
    }
  }
  return expected;
}

std::vector<float> run(const Case& test, std::vector<float>& in, Weights& weights,
                       std::vector<float>& bias, Workers* workers) {
  const ConvGeometry& g = test.g;
  Convolution conv;
  conv.geometry = g;
  conv.in = in.data();
  conv.in_batch_stride = g.in_height * g.in_width * g.in_channels;
  conv.in_row_stride = g.in_width * (test.channels_first ? 1 : g.in_channels);
  conv.in_column_stride = test.channels_first ? 1 : g.in_channels;
  conv.in_channel_stride = test.channels_first ? g.in_height * g.in_width : 1;
  conv.weights = weights.packed.data();
  Guarded<float> out(out_size(g));
  conv.out = out.data();
  if (test.bias) conv.epilogue.bias = bias.data();
  if (test.clamp) {
    conv.epilogue.low = -1.25f;
    conv.epilogue.high = 1.5f;
  }
  const Increment increment = {conv.out, g.out_channels};
  if (test.block) {
    conv.epilogue.block = Increment::block;
    conv.epilogue.data = &increment;
  }
  const size_t threads = workers == nullptr ? 1 : workers->count();
  const size_t bytes = test.kind == Kind::Dense        ? convolution_scratch(g)
                       : test.kind == Kind::Transposed ? transposed_scratch(g)
                       : test.kind == Kind::Winograd   ? winograd_scratch(g, threads)
                                                       : 0;
  std::vector<char> scratch(bytes, '\x7f');  // garbage
  if (test.kind == Kind::Dense) convolve(conv, scratch.data(), workers);
  if (test.kind == Kind::Depthwise) convolve_depthwise(conv, workers);
  if (test.kind == Kind::Transposed) convolve_transposed(conv, scratch.data(), workers);
  if (test.kind == Kind::Winograd) convolve_winograd(conv, scratch.data(), workers);
  CHECK(out.intact());
  return std::vector<float>(out.data(), out.data() + out.size());
}

bool as_expected(const Case& test, const std::vector<float>& in, const Weights& weights,
                 const std::vector<float>& bias, const std::vector<float>& out) {
  const ConvGeometry& g = test.g;
  Epilogue epilogue;
  if (test.clamp) {
    epilogue.low = -1.25f;
    epilogue.high = 1.5f;
  }
  const Input input = {in, test};
  for (int64_t i = 0; i < out_size(g); ++i) {
    const int64_t o = i % g.out_channels;
    const int64_t x = i / g.out_channels % g.out_width;
    const int64_t y = i / g.out_channels / g.out_width % g.out_height;
    const int64_t n = i / g.out_channels / g.out_width / g.out_height;
    Expected expected = expected_at(input, weights, n, y, x, o);
    if (test.bias) expected.add(bias[static_cast<size_t>(o)]);
    expected.size += 1;
    // Each result uses nine of a tile's 36 pixels, but its error depends on the sums of all of
    // them.
    if (test.kind == Kind::Winograd) expected.size *= 8;
    const float result = out[static_cast<size_t>(i)] - (test.block ? 1.0f : 0.0f);
    if (!expected.holds(result, epilogue)) return false;
  }
  return true;
}

void check_case(const Case& test, uint32_t seed, PoolWorkers& two) {
  Random random(seed);
  std::vector<float> in = random.reals(in_size(test.g), -1, 1);
  Weights weights(test, random);
  std::vector<float> bias = bias_of(random, test.g.out_channels);
  const std::vector<float> out = run(test, in, weights, bias, nullptr);
  const bool ok = as_expected(test, in, weights, bias, out);
  if (!ok) {
    char what[16];
    std::snprintf(what, sizeof(what), "kind %d", static_cast<int>(test.kind));
    print_geometry(what, test.g);
  }
  CHECK(ok);
  CHECK(run(test, in, weights, bias, &two) == out);
}

Case drawn_case(Kind kind, Random& random) {
  Case test;
  test.kind = kind;
  test.g = drawn_geometry(random, 35);
  ConvGeometry& g = test.g;
  g.groups = kind == Kind::Depthwise ? random.whole(1, 40) : random.whole(1, 3);
  const bool one = kind == Kind::Depthwise;
  g.in_channels = g.groups * (one ? 1 : random.whole(1, 20));
  const int64_t most = one ? 3 : 24;
  g.out_channels = g.groups * (one && random.whole(0, 3) != 0 ? 1 : random.whole(1, most));
  if (kind == Kind::Transposed) {
    const int64_t more_y = random.whole(0, g.stride_y - 1);
    const int64_t more_x = random.whole(0, g.stride_x - 1);
    g.out_height = std::max<int64_t>(0, (g.in_height - 1) * g.stride_y - 2 * g.pad_top +
                                            (g.kernel_y - 1) * g.dilation_y + more_y + 1);
    g.out_width = std::max<int64_t>(0, (g.in_width - 1) * g.stride_x - 2 * g.pad_left +
                                           (g.kernel_x - 1) * g.dilation_x + more_x + 1);
  }
  test.channels_first = kind == Kind::Dense && random.whole(0, 2) == 0;
  test.bias = random.whole(0, 1) == 1;
  test.clamp = random.whole(0, 1) == 1;
  test.block = random.whole(0, 1) == 1;
  return test;
}

void test_drawn_geometries(PoolWorkers& two) {
  Random random(3);
  for (Kind kind : {Kind::Dense, Kind::Depthwise, Kind::Transposed}) {
    for (uint32_t i = 0; i < 120; ++i) check_case(drawn_case(kind, random), i, two);
  }
}

Case square(Kind kind, int64_t size, int64_t in_channels, int64_t out_channels, int64_t kernel,
            int64_t stride, int64_t pad) {
  Case test = {kind, {}, false, true, true, true};
  ConvGeometry& g = test.g;
  g.in_height = g.in_width = size;
  g.in_channels = in_channels;
  g.out_channels = out_channels;
  g.kernel_y = g.kernel_x = kernel;
  g.stride_y = g.stride_x = stride;
  g.pad_top = g.pad_left = pad;
  g.groups = kind == Kind::Depthwise ? in_channels : 1;
  g.out_height = g.out_width = out_of(size, kernel, stride, 1, pad);
  return test;
}

// 1 by 1 with all layouts of pixels: consecutive, strided, colliding in the cache, channels first,
// several images.
void test_pointwise(PoolWorkers& two) {
  for (int64_t stride : {1, 2}) {
    for (int64_t channels : {24, 512, 1024}) {
      for (bool channels_first : {false, true}) {
        for (int64_t groups : {1, 4}) {
          Case test = square(Kind::Dense, 6, channels, 20, 1, stride, 0);
          test.g.batch = 2;
          test.g.groups = groups;
          test.channels_first = channels_first;
          check_case(test, 12, two);
        }
      }
    }
  }
}

// Convolutions as in networks: the widths that tiles fit, pairs of rows, strided 1 by 1, first
// layers whose input is channels first, every depthwise kernel.
void test_network_geometries(PoolWorkers& two) {
  for (int64_t size : {7, 8, 14, 15, 28}) {
    check_case(square(Kind::Dense, size, 20, 40, 3, 1, 1), 1, two);
    check_case(square(Kind::Dense, size, 20, 40, 1, 1, 0), 2, two);
    check_case(square(Kind::Dense, size, 20, 40, 1, 2, 0), 3, two);
    check_case(square(Kind::Dense, size, 16, 16, 3, 2, 1), 4, two);
    for (int64_t kernel : {3, 5, 7}) {
      for (int64_t stride : {1, 2}) {
        check_case(square(Kind::Depthwise, size, 144, 144, kernel, stride, kernel / 2), 5, two);
        check_case(square(Kind::Depthwise, size, 21, 21, kernel, stride, 1), 6, two);
      }
    }
    // More padding than the kernel needs.
    check_case(square(Kind::Depthwise, size / 7, 33, 33, 3, 1, 4), 9, two);
    check_case(square(Kind::Depthwise, size / 2, 16, 16, 5, 2, 6), 10, two);
    Case grouped = square(Kind::Dense, size, 40, 60, 3, 1, 1);
    grouped.g.groups = 5;
    check_case(grouped, 11, two);
    Case first = square(Kind::Dense, size, 3, 24, 3, 2, 1);
    first.channels_first = true;
    check_case(first, 7, two);
    first.g.in_channels = 37;
    check_case(first, 8, two);
  }
}

// Tiles that extend beyond any side, images smaller than a tile, blocks of fewer tiles than one.
void test_winograd(PoolWorkers& two) {
  Random random(5);
  for (uint32_t i = 0; i < 60; ++i) {
    Case test = drawn_case(Kind::Winograd, random);
    ConvGeometry& g = test.g;
    g.kernel_y = g.kernel_x = 3;
    g.stride_y = g.stride_x = g.dilation_y = g.dilation_x = g.groups = 1;
    g.in_channels = kPanel * random.whole(1, 3);
    g.out_channels = kPanel * random.whole(1, 3);
    g.out_height = out_of(g.in_height, 3, 1, 1, g.pad_top);
    g.out_width = out_of(g.in_width, 3, 1, 1, g.pad_left);
    check_case(test, i, two);
  }
  check_case(square(Kind::Winograd, 28, 64, 80, 3, 1, 1), 1, two);
}

// --- pools --------------------------------------------------------------------------------------

float pooled(const Pooling& p, const Input& in, int64_t n, int64_t y, int64_t x, int64_t c) {
  const ConvGeometry& g = p.geometry;
  double sum = 0;
  float most = -std::numeric_limits<float>::infinity();
  int64_t inside = 0;
  int64_t padded = 0;
  for (int64_t tap = 0; tap < g.kernel_y * g.kernel_x; ++tap) {
    const int64_t from_y = y * g.stride_y - g.pad_top + tap / g.kernel_x * g.dilation_y;
    const int64_t from_x = x * g.stride_x - g.pad_left + tap % g.kernel_x * g.dilation_x;
    if (from_y < g.in_height + g.pad_top && from_x < g.in_width + g.pad_left) ++padded;
    if (from_y < 0 || from_x < 0 || from_y >= g.in_height || from_x >= g.in_width) continue;
    ++inside;
    sum += in.at(n, from_y, from_x, c);
    most = std::max(most, in.at(n, from_y, from_x, c));
  }
  if (p.kind == Pool::Max) return most;
  const int64_t count = p.divisor != 0 ? p.divisor : (p.count_padding ? padded : inside);
  return static_cast<float>(sum / static_cast<double>(count));
}

void check_pool(Pooling& p, uint32_t seed, PoolWorkers& two) {
  const ConvGeometry& g = p.geometry;
  Random random(seed);
  const std::vector<float> in = random.reals(in_size(g), -1, 1);
  p.in = in.data();
  Guarded<float> out(out_size(g));
  Guarded<float> again(out_size(g));
  p.out = out.data();
  pool(p, nullptr);
  CHECK(out.intact());
  const Case test = {Kind::Dense, g, false, false, false, false};
  const Input input = {in, test};
  bool ok = true;
  for (int64_t i = 0; i < out_size(g); ++i) {
    const int64_t x = i / g.out_channels % g.out_width;
    const int64_t y = i / g.out_channels / g.out_width % g.out_height;
    const int64_t n = i / g.out_channels / g.out_width / g.out_height;
    const float wanted = pooled(p, input, n, y, x, i % g.out_channels);
    ok = ok && close(out[i], wanted, 2e-6, 1);  // -inf for windows outside of the input
  }
  CHECK(ok);
  p.out = again.data();
  pool(p, &two);
  CHECK(out == again);
}

void test_pools(PoolWorkers& two) {
  Random random(5);
  for (uint32_t i = 0; i < 120; ++i) {
    Pooling p;
    p.geometry = drawn_geometry(random, 20);
    ConvGeometry& g = p.geometry;
    g.pad_top = std::min(g.pad_top, g.kernel_y / 2);
    g.pad_left = std::min(g.pad_left, g.kernel_x / 2);
    p.kind = i % 2 == 0 ? Pool::Max : Pool::Average;
    if (p.kind == Pool::Average) g.dilation_y = g.dilation_x = 1;
    g.out_height = out_of(g.in_height, g.kernel_y, g.stride_y, g.dilation_y, g.pad_top);
    g.out_width = out_of(g.in_width, g.kernel_x, g.stride_x, g.dilation_x, g.pad_left);
    // One more, as with ceil_mode, if its window starts inside.
    if (g.out_height > 0 && g.out_height * g.stride_y < g.in_height + g.pad_top) ++g.out_height;
    if (g.out_width > 0 && g.out_width * g.stride_x < g.in_width + g.pad_left) ++g.out_width;
    g.in_channels = g.out_channels = random.whole(1, i % 5 == 0 ? 300 : 40);
    p.count_padding = random.whole(0, 1) == 1;
    p.divisor = random.whole(0, 3) == 0 ? 5 : 0;
    const bool beyond =
        (g.out_height > 0 && (g.out_height - 1) * g.stride_y - g.pad_top >= g.in_height) ||
        (g.out_width > 0 && (g.out_width - 1) * g.stride_x - g.pad_left >= g.in_width);
    if (!beyond) check_pool(p, i, two);
  }
}

void test_max_keeps_nan() {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t bad = 0; bad < 4; ++bad) {
    std::vector<float> in(size_t{4} * 20, 1.0f);
    in[static_cast<size_t>(bad * 20 + 19)] = nan;
    Guarded<float> out(20);
    Pooling p;
    p.geometry.in_width = p.geometry.kernel_x = 4;
    p.geometry.in_channels = p.geometry.out_channels = 20;
    p.in = in.data();
    p.out = out.data();
    pool(p, nullptr);
    CHECK(std::isnan(out.data()[19]) && out.data()[18] == 1.0f);
  }
}

}  // namespace

int main() {
  PoolWorkers two(2);
  on_each_isa([&] {
    test_drawn_geometries(two);
    test_network_geometries(two);
    test_pointwise(two);
    test_winograd(two);
    test_pools(two);
    test_max_keeps_nan();
  });
  return check_result();
}
