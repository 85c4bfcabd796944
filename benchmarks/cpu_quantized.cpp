// Times the CPU engine's products of bytes: GOP/s and the share of the peak of dot products of
// bytes, which is measured by turns with them, so that a busy machine slows both.
//
//   cpu_quantized [threads] [word of a case's name]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cpu_timing.h"
#include "rushlight/backends/cpu/kernels/dot_product.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/module/thread_pool.h"

using namespace rushlight;
using namespace rushlight::benchmark;
using namespace rushlight::cpu;

namespace {

struct ProductCase {
  const char* name;
  int64_t rows, depth, columns;
};

constexpr ProductCase kProducts[] = {
    {"square 256", 256, 256, 256},           {"square 512", 512, 512, 512},
    {"square 1024", 512, 1024, 1024},        {"square 2048", 512, 2048, 2048},
    {"deep 128x4096x1024", 128, 4096, 1024}, {"minilm 128x384x384", 128, 384, 384},
    {"minilm 128x384x1536", 128, 384, 1536}, {"minilm 128x1536x384", 128, 1536, 384},
    {"gpt2 128x768x768", 128, 768, 768},     {"gpt2 128x768x2304", 128, 768, 2304},
    {"gpt2 128x768x3072", 128, 768, 3072},   {"gpt2 128x3072x768", 128, 3072, 768},
    {"gpt2 128x768x50257", 128, 768, 50257}, {"resnet 3136x64x256", 3136, 64, 256},
    {"resnet 3136x256x64", 3136, 256, 64},   {"resnet 784x512x128", 784, 512, 128},
    {"resnet 784x128x512", 784, 128, 512},   {"resnet 196x1024x256", 196, 1024, 256},
    {"resnet 196x256x1024", 196, 256, 1024}, {"resnet 49x2048x512", 49, 2048, 512},
    {"resnet 49x512x2048", 49, 512, 2048},   {"mbv2 12544x32x16", 12544, 32, 16},
    {"mbv2 12544x16x96", 12544, 16, 96},     {"mbv2 3136x24x144", 3136, 24, 144},
    {"mbv2 784x192x32", 784, 192, 32},       {"mbv2 196x384x64", 196, 384, 64},
    {"mbv2 196x576x96", 196, 576, 96},       {"mbv2 49x960x160", 49, 960, 160},
    {"mbv2 49x320x1280", 49, 320, 1280},     {"rows 1x768x3072", 1, 768, 3072},
    {"rows 2x768x3072", 2, 768, 3072},       {"rows 4x768x3072", 4, 768, 3072},
    {"rows 6x768x3072", 6, 768, 3072},       {"rows 7x768x3072", 7, 768, 3072},
    {"rows 16x768x3072", 16, 768, 3072},     {"rows 32x768x3072", 32, 768, 3072},
};

enum class Output { Bytes, Numbers, Dynamic };
constexpr const char* kOutputs[] = {"u8", "f32", "dyn"};

void run_product(const ProductCase& test, Output output, PoolWorkers& workers) {
  std::vector<float> a, panels, start, multipliers, scales, c;
  QuantizedProduct p;
  p.rows = test.rows;
  p.depth = p.a_step = test.depth;
  p.columns = p.results.step = test.columns;
  p.a = reinterpret_cast<const uint8_t*>(aligned(a, static_cast<size_t>(p.rows * p.depth / 4 + 1)));
  const int64_t columns = panels_of(p.columns) * kPanel;
  p.panels = aligned(panels, static_cast<size_t>(columns * quads_of(p.depth)));
  p.results.start = reinterpret_cast<const int32_t*>(aligned(start, static_cast<size_t>(columns)));
  p.results.multipliers = aligned(multipliers, static_cast<size_t>(columns));
  float* out = aligned(c, static_cast<size_t>(p.rows * p.columns));
  if (output == Output::Bytes) {
    p.results.bytes = reinterpret_cast<uint8_t*>(out);
  } else {
    p.results.floats = out;
  }
  if (output == Output::Dynamic) {
    p.results.row_scales = aligned(scales, static_cast<size_t>(2 * p.rows));
  }
  const double operations = 2.0 * static_cast<double>(p.rows * p.depth * p.columns);
  const Timing t = measure_dot(operations, workers.count(), [&] { multiply(p, &workers); });
  char name[64];
  std::snprintf(name, sizeof(name), "%s %s", test.name, kOutputs[static_cast<int>(output)]);
  print(name, operations, t);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t threads = argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : 1;
  const char* word = argc > 2 ? argv[2] : "";
  PoolWorkers workers(threads);
  std::printf("%s, %zu threads\n", kernels::isa_name(kernels::current_isa()), threads);
  for (const ProductCase& test : kProducts) {
    if (std::strstr(test.name, word) == nullptr) continue;
    for (const Output output : {Output::Bytes, Output::Numbers, Output::Dynamic}) {
      run_product(test, output, workers);
    }
  }
  return 0;
}
