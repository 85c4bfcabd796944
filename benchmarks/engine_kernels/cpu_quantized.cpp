// Times the CPU engine's products of bytes: GOP/s and the share of the peak of dot products of
// bytes, which is measured by turns with them, so that a busy machine slows both; of few rows and
// weights that are in no cache ("cold"), GB/s and the share of what a core reads at most.
//
//   cpu_quantized [threads] [word of a case's name]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cpu_timing.h"
#include "rushlight/engine/kernels/products/dot_product.h"
#include "rushlight/engine/kernels/rows/quantized.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/module/thread_pool.h"

using namespace rushlight;
using namespace rushlight::benchmark;
using namespace rushlight::engine;

namespace {

constexpr size_t kColdBytes = size_t{96} << 20;  // of weights, more than a cache holds

constexpr int64_t kColdRows = 16;

struct ProductCase {
  const char* name;
  int64_t rows, depth, columns;
};

constexpr ProductCase kProducts[] = {
    {"square 256", 256, 256, 256},
    {"square 512", 512, 512, 512},
    {"square 1024", 512, 1024, 1024},
    {"square 2048", 512, 2048, 2048},
    {"deep 128x4096x1024", 128, 4096, 1024},
    {"minilm 128x384x384", 128, 384, 384},
    {"minilm 128x384x1536", 128, 384, 1536},
    {"minilm 128x1536x384", 128, 1536, 384},
    {"gpt2 128x768x768", 128, 768, 768},
    {"gpt2 128x768x2304", 128, 768, 2304},
    {"gpt2 128x768x3072", 128, 768, 3072},
    {"gpt2 128x3072x768", 128, 3072, 768},
    {"gpt2 128x768x50257", 128, 768, 50257},
    {"resnet 3136x64x256", 3136, 64, 256},
    {"resnet 3136x256x64", 3136, 256, 64},
    {"resnet 784x512x128", 784, 512, 128},
    {"resnet 784x128x512", 784, 128, 512},
    {"resnet 196x1024x256", 196, 1024, 256},
    {"resnet 196x256x1024", 196, 256, 1024},
    {"resnet 49x2048x512", 49, 2048, 512},
    {"resnet 49x512x2048", 49, 512, 2048},
    {"mbv2 12544x32x16", 12544, 32, 16},
    {"mbv2 12544x16x96", 12544, 16, 96},
    {"mbv2 3136x24x144", 3136, 24, 144},
    {"mbv2 3136x144x24", 3136, 144, 24},
    {"mbv2 784x192x32", 784, 192, 32},
    {"mbv2 196x384x64", 196, 384, 64},
    {"mbv2 196x576x96", 196, 576, 96},
    {"mbv2 49x960x160", 49, 960, 160},
    {"mbv2 49x320x1280", 49, 320, 1280},
    {"llama 1x2048x8192", 1, 2048, 8192},
    {"llama 2x2048x8192", 2, 2048, 8192},
    {"llama 4x2048x8192", 4, 2048, 8192},
    {"llama 8x2048x8192", 8, 2048, 8192},
    {"llama 16x2048x8192", 16, 2048, 8192},
    {"llama 512x2048x8192", 512, 2048, 8192},
    {"llama 512x8192x2048", 512, 8192, 2048},
    {"rows 1x768x3072", 1, 768, 3072},
    {"rows 2x768x3072", 2, 768, 3072},
    {"rows 4x768x3072", 4, 768, 3072},
    {"rows 6x768x3072", 6, 768, 3072},
    {"rows 7x768x3072", 7, 768, 3072},
    {"rows 16x768x3072", 16, 768, 3072},
    {"rows 32x768x3072", 32, 768, 3072},
    {"rows 1x4096x4096", 1, 4096, 4096},
};

// Sums with a residual, which they replace. Nibbles have one scale for a column, or for each 32
// terms. In the last two, rows have scales for each 32 terms, too.
enum class Output { Bytes, Sums, Numbers, Dynamic, Nibbles, Groups, RowBytes, RowNibbles };
constexpr const char* kOutputs[] = {"u8",     "u8+",        "f32",         "dyn",
                                    "4 bits", "4 bits g32", "8 bits rows", "4 bits rows"};
constexpr int64_t kGroup = 32;

void set_row_groups(std::vector<float>& scales, std::vector<float>& sums, QuantizedProduct* p) {
  const auto count = static_cast<size_t>(p->rows * p->groups.groups);
  p->groups.type = ScaleType::Float16;
  p->row_groups.groups = p->groups.groups;
  p->row_groups.scales = aligned(scales, count);
  p->row_groups.sums = reinterpret_cast<const int32_t*>(aligned(sums, count));
  p->results.scaled = true;
}

void run_product(const ProductCase& test, Output output, bool cold, PoolWorkers& workers) {
  std::vector<float> a, panels, start, multipliers, scales, row_scales, c;
  QuantizedProduct p;
  p.rows = test.rows;
  p.depth = p.a_stride = test.depth;
  p.columns = p.results.stride = test.columns;
  p.a = reinterpret_cast<const uint8_t*>(aligned(a, static_cast<size_t>(p.rows * p.depth / 4 + 1)));
  const int64_t columns = panels_of(p.columns) * kPanel;
  p.bits = output >= Output::Nibbles && output != Output::RowBytes ? 4 : 8;
  const auto size = static_cast<size_t>(columns * panel_quads(p.depth, p.bits));  // floats
  const size_t copies = cold ? kColdBytes / (size * 4) + 2 : 1;
  const float* weights = aligned(panels, size * copies);
  p.results.start = reinterpret_cast<const int32_t*>(aligned(start, static_cast<size_t>(columns)));
  p.results.multipliers = aligned(multipliers, static_cast<size_t>(columns));
  float* out = aligned(c, static_cast<size_t>(p.rows * p.columns));
  if (output <= Output::Sums) {
    p.results.bytes = reinterpret_cast<uint8_t*>(out);
    if (output == Output::Sums) p.results.residual = p.results.bytes;
    p.results.residual_stride = p.results.stride;
    set_sum(0.5f, 0.25f, 0.5f, &p.results.sum);
  } else {
    p.results.floats = out;
  }
  if (output >= Output::Dynamic) {
    p.results.row_scales = aligned(row_scales, static_cast<size_t>(2 * p.rows));
  }
  const char* group_scales = nullptr;
  std::vector<float> sums;
  if (output >= Output::Groups) {
    p.groups.groups = p.depth / kGroup;
    const auto count = static_cast<size_t>(columns * p.groups.groups) * copies;
    group_scales = reinterpret_cast<const char*>(aligned(scales, count));
    p.results.shares = p.results.multipliers;
  }
  if (output >= Output::RowBytes) set_row_groups(row_scales, sums, &p);
  const size_t scale_size = static_cast<size_t>(p.groups.panel_bytes() * panels_of(p.columns));
  const double operations = 2.0 * static_cast<double>(p.rows * p.depth * p.columns);
  size_t copy = 0;
  const auto run = [&] {
    p.panels = weights + size * (copy % copies);
    if (group_scales != nullptr) {
      p.groups.scales = group_scales + scale_size * (copy % copies);
    }
    ++copy;
    multiply(p, &workers);
  };
  char name[64];
  std::snprintf(name, sizeof(name), "%s %s%s", test.name, kOutputs[static_cast<int>(output)],
                cold ? " cold" : "");
  if (!cold) return print(name, operations, measure_dot(operations, workers.count(), run));
  // With weights that are in no cache: the share of the memory's peak rate.
  const auto bytes = static_cast<double>(size * 4 + scale_size);
  print_bytes(name, bytes, measure_read(bytes, workers.count(), run));
}

}  // namespace

int main(int argc, char** argv) {
  const size_t threads = argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : 1;
  const char* word = argc > 2 ? argv[2] : "";
  PoolWorkers workers(threads);
  std::printf("%s, %zu threads\n", kernels::isa_name(kernels::current_isa()), threads);
  for (const ProductCase& test : kProducts) {
    if (std::strstr(test.name, word) == nullptr) continue;
    for (const Output output :
         {Output::Bytes, Output::Sums, Output::Numbers, Output::Dynamic, Output::Nibbles,
          Output::Groups, Output::RowBytes, Output::RowNibbles}) {
      if (output >= Output::Groups && test.depth % kGroup != 0) continue;
      run_product(test, output, false, workers);
      if (test.rows <= kColdRows) run_product(test, output, true, workers);
    }
  }
  return 0;
}
