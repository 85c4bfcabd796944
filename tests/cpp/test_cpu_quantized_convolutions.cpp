// The CPU engine's convolutions and pools of uint8 beside sums of plain integers, over drawn
// geometries: strides, padding, dilation, groups; the same bytes on every instruction set and with
// any number of threads.
#include <algorithm>

#include "cpu_geometry.h"
#include "cpu_quantized.h"

using namespace rushlight;
using namespace rushlight::cpu;
using namespace rushlight::test;

namespace {

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

// More terms in a row than 16 bits can sum up, all of the greatest size.
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
  test_pools();
  test_global_average();
  return check_result();
}
