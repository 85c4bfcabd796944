// Times attention over pages of keys and values: GB/s of the pages that are read, and the share of
// what a core reads at most, for steps of one token and of eight sequences; of prefill, GOP/s and
// the share of the peak of float32 multiply-adds. Heads are those of SmolLM 135M and of Llama 3.2
// 1B. Each call is of the next layer, and a step finds nothing in a cache, as between the products
// of a model.
//
//   kv_attention [threads] [word of a case's name]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cpu_timing.h"
#include "rushlight/engine/kernels/products/cached_attention.h"
#include "rushlight/engine/types/kv_page.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/module/memory.h"
#include "rushlight/module/thread_pool.h"

using namespace rushlight;
using namespace rushlight::benchmark;
using namespace rushlight::engine;

namespace {

constexpr int64_t kWidth = 64;

struct Model {
  const char* name;
  int64_t layers, heads, key_heads;
};
constexpr Model kModels[] = {{"135m", 30, 9, 3}, {"1b", 16, 32, 8}};

struct Shape {
  const char* name;
  int64_t sequences, tokens;  // of each sequence
};
constexpr Shape kShapes[] = {
    {"decode 1", 1, 1}, {"decode 8", 8, 1}, {"verify 9", 1, 9}, {"prefill 512", 1, 512}};
constexpr int64_t kContexts[] = {0, 512, 2048, 4096, 8192};
constexpr DType kTypes[] = {DType::Float32, DType::Float16, DType::Int8};

// Sequences of `positions` positions, whose pages are all written.
class Sequences {
 public:
  Sequences(const Model& model, DType dtype, int64_t sequences, int64_t positions) {
    cache.layout = {dtype, static_cast<uint32_t>(model.layers),
                    static_cast<uint32_t>(model.key_heads), kWidth, kWidth};
    const size_t size = kv_page_bytes(cache.layout);
    const size_t count = static_cast<size_t>((positions + kKvTokens - 1) / kKvTokens);
    memory_.reserve(static_cast<size_t>(sequences) * count * size + kHugePage);
    memory_.use_huge_pages();  // as a runner's pages
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    uint8_t* const first = memory_.data() + (kHugePage - address % kHugePage) % kHugePage;
    for (size_t i = 0; i < static_cast<size_t>(sequences) * count; ++i) {
      pages_.push_back(first + i * size);
    }
    for (size_t i = 0; i < static_cast<size_t>(sequences); ++i) {
      sequences_.push_back({pages_.data() + i * count, count});
    }
    cache.sequences = {sequences_.data(), sequences_.size()};
  }

  KvCache cache;

 private:
  static constexpr size_t kHugePage = size_t{2} << 20;
  Pages memory_;
  std::vector<uint8_t*> pages_;
  std::vector<KvSequence> sequences_;
};

// Fills pages with numbers that are no great ones; those of int8 are scales of float16's bits.
void fill(const KvCache& cache) {
  for (const KvSequence& sequence : cache.sequences) {
    for (size_t i = 0; i < sequence.n_pages; ++i) {
      const size_t bytes = kv_page_bytes(cache.layout);
      auto* const halves = reinterpret_cast<uint16_t*>(sequence.pages[i]);
      auto* const floats = reinterpret_cast<float*>(sequence.pages[i]);
      for (size_t k = 0; k < bytes / 4; ++k) {
        if (cache.layout.dtype == DType::Float32) {
          floats[k] = static_cast<float>(k % 1024) / 1024 - 0.5f;
        } else {
          halves[2 * k] = static_cast<uint16_t>(0x3000 + 2 * k % 1024);
          halves[2 * k + 1] = static_cast<uint16_t>(0x3000 + (2 * k + 1) % 1024);
        }
      }
    }
  }
}

void run_case(const Model& model, const Shape& shape, DType dtype, int64_t context,
              PoolWorkers& workers) {
  const int64_t row = model.heads * kWidth;
  const int64_t key_row = model.key_heads * kWidth;
  const Sequences pages(model, dtype, shape.sequences, context + shape.tokens);
  fill(pages.cache);
  std::vector<float> q, k, v, out, scratch;
  std::vector<int64_t> positions, sequences;
  for (int64_t s = 0; s < shape.sequences; ++s) {
    for (int64_t i = 0; i < shape.tokens; ++i) {
      positions.push_back(context + i);
      sequences.push_back(s);
    }
  }
  CachedAttention a;
  a.tokens = shape.sequences * shape.tokens;
  a.heads = model.heads;
  a.key_heads = model.key_heads;
  a.width = a.value_width = kWidth;
  a.q = aligned(q, static_cast<size_t>(a.tokens * row));
  a.k = aligned(k, static_cast<size_t>(a.tokens * key_row));
  a.v = aligned(v, static_cast<size_t>(a.tokens * key_row));
  a.out = aligned(out, static_cast<size_t>(a.tokens * row));
  a.q_strides = a.out_strides = {row, kWidth};
  a.k_strides = a.v_strides = {key_row, kWidth};
  a.positions = positions.data();
  a.sequences = sequences.data();
  a.scale = 0.125f;
  float* const memory = aligned(scratch, cached_attention_scratch(a, workers.count()) / 4 + 1);
  const auto run = [&] {
    attend_to_cache(a, pages.cache, memory, &workers);
    a.layer = (a.layer + 1) % model.layers;
  };
  char name[64];
  std::snprintf(name, sizeof(name), "%s %s %s after %ld", model.name, shape.name, dtype_name(dtype),
                static_cast<long>(context));
  const double seen = static_cast<double>(context) + static_cast<double>(shape.tokens + 1) / 2;
  if (shape.tokens > 16) {
    const double flops = 4.0 * static_cast<double>(shape.tokens * row) * seen;
    return print(name, flops, measure(flops, workers.count(), run));
  }
  const double token_bytes = static_cast<double>(kv_page_shape(pages.cache.layout).head_bytes) *
                             static_cast<double>(model.key_heads) / kKvTokens;
  const double bytes = token_bytes * static_cast<double>(shape.sequences) *
                       static_cast<double>(context + shape.tokens);
  print_bytes(name, bytes, measure_cold_read(bytes, workers.count(), run));
}

}  // namespace

int main(int argc, char** argv) {
  const size_t threads = argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : 1;
  const char* word = argc > 2 ? argv[2] : "";
  PoolWorkers workers(threads);
  std::printf("%s, %zu threads\n", kernels::isa_name(kernels::current_isa()), threads);
  const auto run = [&](const Model& model, const Shape& shape, DType dtype) {
    char name[64];
    std::snprintf(name, sizeof(name), "%s %s %s", model.name, shape.name, dtype_name(dtype));
    if (std::strstr(name, word) == nullptr) return;
    for (const int64_t context : kContexts) run_case(model, shape, dtype, context, workers);
  };
  for (const Model& model : kModels) {
    for (const Shape& shape : kShapes) {
      for (const DType dtype : kTypes) run(model, shape, dtype);
    }
  }
  return 0;
}
