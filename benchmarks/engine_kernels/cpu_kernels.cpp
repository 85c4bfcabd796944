// Times the CPU engine's products and convolutions: GFLOP/s and the share of the float32 peak,
// which is measured by turns with them, so that a busy machine slows both.
//
//   cpu_kernels [threads] [word of a case's name]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cpu_cases.h"
#include "cpu_timing.h"
#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/kernels/products/product.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/module/thread_pool.h"

using namespace rushlight;
using namespace rushlight::benchmark;
using namespace rushlight::engine;

namespace {

constexpr size_t kColdBytes = size_t{96} << 20;  // of weights, more than a cache holds

struct ProductCase {
  const char* name;
  int64_t rows, depth, columns;
};

constexpr ProductCase kProducts[] = {
    {"vit 197x768x768", 197, 768, 768},      {"vit 197x768x3072", 197, 768, 3072},
    {"vit 197x3072x768", 197, 3072, 768},    {"minilm 128x384x384", 128, 384, 384},
    {"minilm 128x384x1536", 128, 384, 1536}, {"minilm 128x1536x384", 128, 1536, 384},
    {"gpt2 128x768x2304", 128, 768, 2304},   {"gpt2 128x768x3072", 128, 768, 3072},
    {"gpt2 128x3072x768", 128, 3072, 768},   {"gpt2 128x768x50257", 128, 768, 50257},
    {"resnet 3136x64x256", 3136, 64, 256},   {"resnet 3136x256x64", 3136, 256, 64},
    {"resnet 784x128x512", 784, 128, 512},   {"resnet 784x512x128", 784, 512, 128},
    {"resnet 196x1024x256", 196, 1024, 256}, {"resnet 196x256x1024", 196, 256, 1024},
    {"resnet 49x2048x512", 49, 2048, 512},   {"resnet 49x512x2048", 49, 512, 2048},
    {"mbv2 12544x32x16", 12544, 32, 16},     {"mbv2 12544x16x96", 12544, 16, 96},
    {"mbv2 3136x96x24", 3136, 96, 24},       {"mbv2 3136x24x144", 3136, 24, 144},
    {"mbv2 784x144x32", 784, 144, 32},       {"mbv2 784x32x192", 784, 32, 192},
    {"mbv2 196x384x64", 196, 384, 64},       {"mbv2 196x64x384", 196, 64, 384},
    {"mbv2 196x576x96", 196, 576, 96},       {"mbv2 49x960x160", 49, 960, 160},
    {"mbv2 49x160x960", 49, 160, 960},       {"mbv2 49x960x320", 49, 960, 320},
    {"mbv2 49x320x1280", 49, 320, 1280},     {"gemv 1x768x3072", 1, 768, 3072},
    {"gemv 1x768x50257", 1, 768, 50257},     {"rows 4x768x3072", 4, 768, 3072},
    {"rows 6x768x3072", 6, 768, 3072},
};

struct PanelCase {
  PanelType type;
  const char* name;
  int64_t bits;
  int64_t group;  // terms that share a scale, if they do not all
};

constexpr PanelCase kPanelTypes[] = {{PanelType::Float32, "", 32, 0},
                                     {PanelType::BFloat16, " bf16", 16, 0},
                                     {PanelType::Float16, " f16", 16, 0},
                                     {PanelType::Int8, " int8", 8, 0},
                                     {PanelType::Int4, " int4", 4, 32}};

void run_product(const ProductCase& test, bool cold, const PanelCase& panel_case,
                 PoolWorkers& workers) {
  std::vector<float> a, b, c, scales, scratch;
  Product p;
  p.rows = test.rows;
  p.depth = test.depth;
  p.columns = test.columns;
  p.a = aligned(a, static_cast<size_t>(p.rows * p.depth));
  p.a_stride = p.depth;
  const auto weights = static_cast<size_t>(panels_of(p.columns) * kPanel * p.depth);
  p.type = panel_case.type;
  const size_t size = weights * static_cast<size_t>(panel_case.bits) / 8;  // bytes
  p.scales.groups = panel_case.group > 0 ? p.depth / panel_case.group : 1;
  p.scales.scales = aligned(scales, weights / static_cast<size_t>(p.depth / p.scales.groups));
  const size_t copies = cold ? kColdBytes / size + 2 : 1;
  const char* panels = reinterpret_cast<const char*>(aligned(b, size * copies / 4));
  p.c = aligned(c, static_cast<size_t>(p.rows * p.columns));
  p.c_stride = p.columns;
  const size_t bytes = product_scratch(p, workers.count());
  float* room = aligned(scratch, bytes / 4 + 16);
  const double flops = 2.0 * static_cast<double>(p.rows * p.depth * p.columns);
  size_t copy = 0;
  const Timing t = measure(flops, workers.count(), [&] {
    p.panels = panels + size * (copy++ % copies);
    multiply(p, room, bytes, &workers);
  });
  char name[64];
  std::snprintf(name, sizeof(name), "%s%s%s", test.name, panel_case.name, cold ? " cold" : "");
  print(name, flops, t);
}

void run_convolution(const ConvCase& test, bool cold, PoolWorkers& workers) {
  std::vector<float> in, weights, out, room;
  Convolution conv;
  Pooling pooling;
  const ConvGeometry g = conv.geometry = pooling.geometry = geometry_of(test);
  conv.in = pooling.in = aligned(in, static_cast<size_t>(test.size * test.size * g.in_channels));
  conv.in_row_stride = test.size * (test.channels_first ? 1 : g.in_channels);
  conv.in_column_stride = test.channels_first ? 1 : g.in_channels;
  conv.in_channel_stride = test.channels_first ? test.size * test.size : 1;
  const int64_t terms = g.kernel_y * g.kernel_x * (g.in_channels / g.groups);
  const auto n_weights = static_cast<size_t>(panels_of(g.out_channels) * kPanel * terms);
  const size_t copies = cold ? kColdBytes / (n_weights * 4) + 2 : 1;
  const float* first = aligned(weights, n_weights * copies);
  const auto n_out = static_cast<size_t>(g.out_height * g.out_width * g.out_channels);
  conv.out = pooling.out = aligned(out, n_out);
  void* scratch = aligned(room, convolution_scratch(g) / 4 + 16);
  pooling.kind = test.kind == Kind::MaxPool ? Pool::Max : Pool::Average;
  const double flops = 2.0 * static_cast<double>(n_out) * static_cast<double>(terms);
  size_t copy = 0;
  const Timing t = measure(flops, workers.count(), [&] {
    conv.weights = first + n_weights * (copy++ % copies);
    if (test.kind == Kind::Dense) {
      convolve(conv, scratch, &workers);
    } else if (test.kind == Kind::Depthwise) {
      convolve_depthwise(conv, &workers);
    } else {
      pool(pooling, &workers);
    }
  });
  char name[64];
  std::snprintf(name, sizeof(name), "%s%s", test.name, cold ? " cold" : "");
  print(name, flops, t);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t threads = argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : 1;
  const char* word = argc > 2 ? argv[2] : "";
  PoolWorkers workers(threads);
  std::printf("%s, %zu threads\n", kernels::isa_name(kernels::current_isa()), threads);
  for (const ProductCase& test : kProducts) {
    if (std::strstr(test.name, word) == nullptr) continue;
    for (const PanelCase& panel_case : kPanelTypes) {
      if (panel_case.group > 0 && test.depth % panel_case.group != 0) continue;
      run_product(test, false, panel_case, workers);
      run_product(test, true, panel_case, workers);
    }
  }
  for (const ConvCase& test : kConvolutions) {
    if (std::strstr(test.name, word) == nullptr) continue;
    run_convolution(test, false, workers);
    if (test.kind == Kind::Dense) run_convolution(test, true, workers);
  }
  return 0;
}
