// Times the CPU engine's convolutions, pools and elementwise operators on uint8, and of rows that
// are quantised as they come: GOP/s and the share of four times the float32 peak, which is that of
// VNNI on processors with both; it is measured by turns with them, so that a busy machine slows
// both.
//
//   cpu_bytes [threads] [word of a case's name]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cpu_cases.h"
#include "cpu_timing.h"
#include "rushlight/engine/kernels/images/quantized_convolution.h"
#include "rushlight/engine/kernels/rows/quantize.h"
#include "rushlight/engine/kernels/rows/quantized.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/module/thread_pool.h"

using namespace rushlight;
using namespace rushlight::benchmark;
using namespace rushlight::engine;

namespace {

uint8_t* bytes(std::vector<float>& memory, size_t n) {
  auto* data = reinterpret_cast<uint8_t*>(aligned(memory, n / 4 + 64));
  return data;
}

void run_convolution(const ConvCase& test, PoolWorkers& workers) {
  std::vector<float> in, weights, out, room, start, multipliers;
  QuantizedConvolution conv;
  QuantizedPooling pooling;
  const ConvGeometry g = conv.geometry = pooling.geometry = geometry_of(test);
  conv.in = pooling.in = bytes(in, static_cast<size_t>(test.size * test.size * g.in_channels));
  conv.in_column_stride = g.in_channels;
  conv.in_row_stride = test.size * g.in_channels;
  if (test.channels_first) {
    conv.in_channel_stride = test.size * test.size;
    conv.in_column_stride = 1;
    conv.in_row_stride = test.size;
  }
  const int64_t terms = g.kernel_y * g.kernel_x * (g.in_channels / g.groups);
  const auto columns = static_cast<size_t>(panels_of(g.out_channels) * kPanel);
  conv.weights = bytes(weights, columns * static_cast<size_t>(g.kernel_y * g.kernel_x * 4 *
                                                              quads_of(g.in_channels / g.groups)));
  conv.results.start = reinterpret_cast<const int32_t*>(bytes(start, columns * 4));
  conv.results.multipliers = aligned(multipliers, columns);
  conv.results.stride = g.out_channels;
  const auto n_out = static_cast<size_t>(g.out_height * g.out_width * g.out_channels);
  conv.results.bytes = pooling.out = bytes(out, n_out);
  const bool depthwise = test.kind == Kind::Depthwise;
  void* scratch = bytes(room, depthwise ? quantized_depthwise_scratch(g)
                                        : quantized_convolution_scratch(g, conv.in_channel_stride));
  pooling.kind = test.kind == Kind::MaxPool ? Pool::Max : Pool::Average;
  const double work = 2.0 * static_cast<double>(n_out) * static_cast<double>(terms);
  const Timing t = measure_dot(work, workers.count(), [&] {
    if (depthwise) {
      convolve_depthwise(conv, scratch, &workers);
    } else if (test.kind == Kind::Dense) {
      convolve(conv, scratch, &workers);
    } else {
      pool(pooling, &workers);
    }
  });
  print(test.name, work, t);
}

// Bytes that a copy reads and writes in a second.
double copy_rate(void* to, const void* from, size_t bytes) {
  constexpr int kRepeat = 20;
  const double start = now(1);
  for (int i = 0; i < kRepeat; ++i) std::memcpy(to, from, bytes);
  return kRepeat * 2.0 * static_cast<double>(bytes) / (now(1) - start);
}

// The sum with a residual of ResNet-50, beside a copy; in bytes that are read and written.
void run_elementwise(PoolWorkers& workers) {
  constexpr int64_t kCount = int64_t{56} * 56 * 256;
  std::vector<float> a, b, out;
  ByteOperands operands;
  operands.rank = 1;
  operands.sizes[0] = kCount;
  operands.a_strides[0] = operands.b_strides[0] = operands.out_strides[0] = 1;
  operands.a = bytes(a, kCount);
  operands.b = bytes(b, kCount);
  operands.out = bytes(out, kCount);
  const auto copy = [&] { return copy_rate(operands.out, operands.a, kCount); };
  const auto time = [&](const char* name, double per_element, auto body) {
    const double work = per_element * kCount;
    print(name, work, measure_beside(copy, work, workers.count(), body));
  };
  QuantizedBinary binary;
  set_sum(0.5f, 0.25f, 0.5f, &binary);
  time("add 56x56x256 (GB/s of a copy)", 3, [&] { combine(binary, operands, &workers); });
  binary.kind = QuantizedBinaryKind::Multiply;
  binary.multiplier = 0.01f;
  time("multiply 56x56x256", 3, [&] { combine(binary, operands, &workers); });
  operands.b_strides[0] = 0;
  time("look up 56x56x256", 2, [&] { look_up(operands, &workers); });
}

// The sizes of layers of MiniLM and GPT-2.
void run_rows(int64_t rows, int64_t width, PoolWorkers& workers) {
  std::vector<float> in, out, scales;
  QuantizeRows job;
  job.rows = rows;
  job.width = job.in_stride = job.out_stride = width;
  const auto n = static_cast<size_t>(rows * width);
  job.in = aligned(in, n);
  job.out = bytes(out, n);
  job.scales = aligned(scales, static_cast<size_t>(2 * rows));
  std::vector<float> copied;
  float* const to = aligned(copied, n);
  const auto copy = [&] { return copy_rate(to, job.in, n * sizeof(float)); };
  const double work = 5.0 * static_cast<double>(n);
  char name[64];
  std::snprintf(name, sizeof name, "quantize rows %lldx%lld", static_cast<long long>(rows),
                static_cast<long long>(width));
  print(name, work,
        measure_beside(copy, work, workers.count(), [&] { quantize_rows(job, &workers); }));
}

}  // namespace

int main(int argc, char** argv) {
  const size_t threads = argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : 1;
  const char* word = argc > 2 ? argv[2] : "";
  PoolWorkers workers(threads);
  std::printf("%s, %zu threads\n", kernels::isa_name(kernels::current_isa()), threads);
  for (const ConvCase& test : kConvolutions) {
    if (std::strstr(test.name, word) != nullptr) run_convolution(test, workers);
  }
  if (std::strstr("elementwise", word) != nullptr) run_elementwise(workers);
  if (std::strstr("rows", word) != nullptr) {
    for (int64_t width : {384, 768, 1536, 3072}) run_rows(128, width, workers);
  }
  return 0;
}
