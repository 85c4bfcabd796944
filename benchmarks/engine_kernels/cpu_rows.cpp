// Times the CPU engine's attention (beside the float32 peak), and its norms, softmax, tile programs
// and copies (beside memcpy of as many bytes as they read and write).
//
//   cpu_rows [threads] [word of a case's name]
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "cpu_timing.h"
#include "rushlight/engine/kernels/products/attention.h"
#include "rushlight/engine/kernels/rows/rows.h"
#include "rushlight/engine/kernels/rows/tile.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/module/thread_pool.h"

using namespace rushlight;
using namespace rushlight::benchmark;
using namespace rushlight::engine;

namespace {

// --- attention ----------------------------------------------------------------------------------

struct AttentionCase {
  const char* name;
  int64_t heads, key_heads, queries, keys, width;
  bool causal;
};

constexpr AttentionCase kAttentions[] = {
    {"attention minilm 128 d32", 12, 12, 128, 128, 32, false},
    {"attention 128 d64", 12, 12, 128, 128, 64, false},
    {"attention gpt2 128 d64 causal", 12, 12, 128, 128, 64, true},
    {"attention vit 197 d64", 12, 12, 197, 197, 64, false},
    {"attention 512 d64", 12, 12, 512, 512, 64, false},
    {"attention 1024 d64 causal", 12, 12, 1024, 1024, 64, true},
    {"attention grouped 128 d64 causal", 9, 3, 128, 128, 64, true},
    {"attention decode 1x512 d64", 9, 3, 1, 512, 64, false},
    {"attention decode 1x2048 d64", 9, 3, 1, 2048, 64, false},
};

void run_attention(const AttentionCase& test, PoolWorkers& workers) {
  std::vector<float> q, k, v, out, room;
  Attention a;
  a.heads = test.heads;
  a.key_heads = test.key_heads;
  a.queries = test.queries;
  a.keys = test.keys;
  a.width = a.value_width = test.width;
  a.causal = test.causal;
  a.scale = 1.0f / std::sqrt(static_cast<float>(test.width));
  // As linear layers leave them: [length, heads, width].
  const auto strides = [&](int64_t heads) {
    HeadStrides s;
    s.head = test.width;
    s.row = heads * test.width;
    return s;
  };
  a.q_strides = a.out_strides = strides(test.heads);
  a.k_strides = a.v_strides = strides(test.key_heads);
  a.q = aligned(q, static_cast<size_t>(a.queries * a.q_strides.row));
  a.k = aligned(k, static_cast<size_t>(a.keys * a.k_strides.row));
  a.v = aligned(v, static_cast<size_t>(a.keys * a.v_strides.row));
  a.out = aligned(out, static_cast<size_t>(a.queries * a.q_strides.row));
  void* const scratch = aligned(room, attention_scratch(a, workers.count()) / 4);
  double pairs = static_cast<double>(a.queries * a.keys);
  if (a.causal) pairs = static_cast<double>(a.queries * (a.queries + 1)) / 2;
  const double flops = 4.0 * pairs * static_cast<double>(a.heads * a.width);
  print(test.name, flops, measure(flops, workers.count(), [&] { attend(a, scratch, &workers); }));
}

// --- what memory limits -------------------------------------------------------------------------

// `floats` are read and as many written, of buffers of `room` floats if that is not 0.
template <class Body>
void run_rows(const char* name, const char* word, int64_t floats, PoolWorkers& workers, Body body,
              int64_t room = 0) {
  if (std::strstr(name, word) == nullptr) return;
  std::vector<float> from, to;
  const auto n = static_cast<size_t>(room != 0 ? room : floats);
  const float* const in = aligned(from, n);
  float* const out = aligned(to, n);
  const double bytes = static_cast<double>(floats) * 8;
  const auto copy_rate = [&] {
    const double start = now(1);
    int64_t copied = 0;
    for (; copied < int64_t{1} << 20; copied += floats) {
      std::memcpy(out, in, static_cast<size_t>(floats) * 4);
      asm volatile("" ::"r"(out) : "memory");
    }
    return static_cast<double>(copied) * 8 / (now(1) - start);
  };
  const Timing t = measure_beside(copy_rate, bytes, workers.count(), [&] { body(in, out); });
  std::printf("%-34s %9.1f us %7.1f GB/s  %7.2f ns/float  (memcpy %5.1f, median of ratios %5.2f)\n",
              name, t.best * 1e6, bytes / t.best * 1e-9, t.best * 1e9 / static_cast<double>(floats),
              t.peak * 1e-9, t.median_share);
}

void run_copies(const char* word, PoolWorkers& workers) {
  struct Case {
    const char* name;
    int64_t sizes[4], in_strides[4];
  };
  const Case cases[] = {
      {"copy dense 197x768", {1, 1, 197, 768}, {0, 0, 768, 1}},
      {"copy heads 128x12x64", {1, 12, 128, 64}, {0, 64, 768, 1}},
      {"copy transpose 768x197", {1, 1, 768, 197}, {0, 0, 1, 768}},
      {"copy transpose 1024x1024", {1, 1, 1024, 1024}, {0, 0, 1, 1024}},
      {"copy to channels last 56x56x64", {1, 1, 3136, 64}, {0, 0, 1, 3136}},
      {"copy to channels last 224x224x3", {1, 1, 50176, 3}, {0, 0, 1, 50176}},
      {"copy to channels first 7x7x2048", {1, 1, 2048, 49}, {0, 0, 1, 2048}},
  };
  for (const Case& test : cases) {
    Copy c;
    c.rank = 4;
    int64_t stride = 1;
    for (size_t d = 4; d-- > 0; stride *= test.sizes[d]) {
      c.sizes[d] = test.sizes[d];
      c.in_strides[d] = test.in_strides[d];
      c.out_strides[d] = stride;
    }
    run_rows(test.name, word, stride, workers, [&](const float* in, float* out) {
      c.in = in;
      c.out = out;
      copy(c, &workers);
    });
  }
}

void run_norms(const char* word, PoolWorkers& workers) {
  std::vector<float> scale_memory;
  Norm norm;
  norm.rows = 197;
  norm.width = 768;
  norm.epsilon = 1e-5f;
  norm.scale = norm.shift = aligned(scale_memory, 768);
  run_rows("layer norm 197x768", word, 197 * 768, workers, [&](const float* in, float* out) {
    norm.in = in;
    norm.out = out;
    normalize(norm, &workers);
  });
  GroupNorm group;
  group.batch = 1;
  group.channels = 320;
  group.space = 1024;
  group.groups = 32;
  for (bool last : {false, true}) {
    group.channels_last = last;
    run_rows(last ? "group norm channels last" : "group norm", word, 320 * 1024, workers,
             [&](const float* in, float* out) {
               group.in = in;
               group.out = out;
               normalize_groups(group, &workers);
             });
  }
  Softmax s;
  s.outer = 12 * 197;
  s.width = 197;
  run_rows("softmax 2364x197", word, s.outer * s.width, workers, [&](const float* in, float* out) {
    s.in = in;
    s.out = out;
    softmax(s, &workers);
  });
  s = {};
  s.outer = 1;
  s.width = 64;
  s.inner = 3136;
  run_rows("softmax of columns 64x3136", word, 64 * 3136, workers,
           [&](const float* in, float* out) {
             s.in = in;
             s.out = out;
             softmax(s, &workers);
           });
}

void run_functions(const char* word, PoolWorkers& workers) {
  struct Case {
    const char* name;
    TileOp op;
    int64_t rows, columns, stride;
  };
  const Case cases[] = {
      {"tile relu 128x3072", TileOp::RELU, 128, 3072, 3072},
      {"tile add 128x3072", TileOp::ADD, 128, 3072, 3072},
      {"tile exp 128x3072", TileOp::EXP, 128, 3072, 3072},
      {"tile tanh 128x3072", TileOp::TANH, 128, 3072, 3072},
      {"tile sigmoid 128x3072", TileOp::SIGMOID, 128, 3072, 3072},
      {"tile silu 128x3072", TileOp::SILU, 128, 3072, 3072},
      {"tile gelu 128x3072", TileOp::GELU, 128, 3072, 3072},
      {"tile gelu tanh 128x3072", TileOp::GELU_TANH, 128, 3072, 3072},
      {"tile sin 128x3072", TileOp::SIN, 128, 3072, 3072},
      {"tile pow 128x3072", TileOp::POW, 128, 3072, 3072},
      {"tile block gelu 14x32", TileOp::GELU, 14, 32, 768},
      {"tile block gelu 56x32", TileOp::GELU, 56, 32, 768},
      {"tile block gelu tanh 56x32", TileOp::GELU_TANH, 56, 32, 768},
      {"tile block silu 56x32", TileOp::SILU, 56, 32, 768},
      {"tile block silu 56x32 of 3072", TileOp::SILU, 56, 32, 3072},
      {"tile block add 14x32", TileOp::ADD, 14, 32, 768},
      {"tile block add 56x32", TileOp::ADD, 56, 32, 768},
      {"tile block add 14x768", TileOp::ADD, 14, 768, 768},
  };
  for (const Case& test : cases) {
    const TileInstruction program[] = {
        {TileOp::LOAD, 0, 0, 0, 0, 0}, {test.op, 1, 0, 0, 0, 0}, {TileOp::STORE, 1, 1, 0, 0, 0}};
    TileOperand operands[2];
    const TileRun run{program, operands, {1, 1, test.rows, test.columns}};
    run_rows(
        test.name, word, test.rows * test.columns, workers,
        [&](const float* in, float* out) {
          operands[0].data = const_cast<float*>(in);
          operands[1].data = out;
          for (TileOperand& operand : operands) {
            operand.strides[2] = test.stride;
            operand.strides[3] = 1;
          }
          if (test.rows < 128) {
            run_tile_block(run, 0, test.rows, 0, test.columns);
          } else {
            run_tiles(run, &workers);
          }
        },
        test.rows * test.stride);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const size_t threads = argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : 1;
  const char* word = argc > 2 ? argv[2] : "";
  PoolWorkers workers(threads);
  std::printf("%s, %zu threads\n", kernels::isa_name(kernels::current_isa()), threads);
  for (const AttentionCase& test : kAttentions) {
    if (std::strstr(test.name, word) != nullptr) run_attention(test, workers);
  }
  run_copies(word, workers);
  run_norms(word, workers);
  run_functions(word, workers);
  return 0;
}
