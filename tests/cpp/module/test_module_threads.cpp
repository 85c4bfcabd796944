// Modules in several threads at once: portable kernels and delegates of the cpu backend, from files
// and clones that share weights, with pools of several sizes; they are loaded, run and destroyed at
// the same time. Results have the same bits as with one thread. Most useful with
// RUSHLIGHT_SANITIZE=thread.
// Usage: test_module_threads FILE...
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "kv_pages.h"
#include "program_builder.h"
#include "rushlight/backends/cpu/cpu_backend.h"
#include "rushlight/module/module.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

constexpr size_t kCallers = 4;
constexpr int kRounds = 6;

// Large enough for its kernels to use several threads: y = softmax(exp(x) @ w).
std::vector<uint8_t> large_file() {
  constexpr int32_t kRows = 96;
  constexpr int32_t kColumns = 160;
  Plan plan;
  TensorOptions at;
  const auto tensor = [&](int32_t rows, int32_t columns) {
    const int32_t made = plan.tensor({rows, columns}, at);
    at.offset += static_cast<uint64_t>(rows) * static_cast<uint64_t>(columns) * 4;
    return made;
  };
  const int32_t x = tensor(kRows, kColumns);
  const int32_t powers = tensor(kRows, kColumns);
  const int32_t product = tensor(kRows, kRows);
  const int32_t y = tensor(kRows, kRows);
  plan.arenas = {0, static_cast<int64_t>(at.offset)};
  TensorOptions weights;
  weights.memory_id = -1;
  weights.constant = 1;
  const int32_t w = plan.tensor({kColumns, kRows}, weights);
  plan.call("aten::exp", {x, powers, powers});
  plan.call("aten::mm", {powers, w, product, product});
  plan.call("aten::_softmax", {product, plan.integer(1), plan.boolean(false), y, y});
  plan.inputs = {x};
  plan.outputs = {y};
  ProgramFile file;
  file.plans = {plan};
  std::vector<float> values(static_cast<size_t>(kColumns) * kRows);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) * 0.01f;
  file.segments = {std::vector<uint8_t>(values.size() * 4)};
  std::memcpy(file.segments[0].data(), values.data(), values.size() * 4);
  file.constants = {0, 0};
  return file.bytes();
}

using Bytes = std::vector<uint8_t>;

// The bytes of all outputs for inputs of ones; empty if the method fails.
Bytes run(Module& module) {
  Result<Method*> loaded = module.method("forward");
  if (!loaded.ok()) return {};
  Method& method = *loaded.value();
  const std::vector<float> ones(1 << 15, 1.0f);
  for (size_t i = 0; i < method.n_inputs(); ++i) {
    const TensorMeta meta = method.meta().input(i).tensor;
    if (!method.set_input(i, HostTensor(meta.dtype, meta.shape(), ones.data())).ok()) return {};
  }
  const KvPages pages;
  method.set_kv_cache(pages.cache());
  if (!method.execute().ok()) return {};
  Bytes bytes;
  for (size_t i = 0; i < method.n_outputs(); ++i) {
    const Tensor& tensor = method.output(i).tensor();
    const uint8_t* data = tensor.as<uint8_t>();
    bytes.insert(bytes.end(), data, data + tensor.nbytes());
  }
  return bytes;
}

// A program in memory, and its results with one thread.
struct Sample {
  std::vector<uint8_t> file;
  Bytes expected;

  Status open(Module& module, const BackendTable& backends, size_t threads) const {
    ModuleOptions options;
    options.backends = &backends;
    options.threads = threads;
    return module.open_memory(file.data(), file.size(), options);
  }
};

bool read_file(const char* path, std::vector<uint8_t>* bytes) {
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return false;
  uint8_t part[4096];
  for (size_t n; (n = std::fread(part, 1, sizeof(part), file)) > 0;) {
    bytes->insert(bytes->end(), part, part + n);
  }
  std::fclose(file);
  return true;
}

// Each caller opens, runs and closes all programs, with its own number of threads.
void test_modules_of_their_own(const std::vector<Sample>& samples, const BackendTable& backends) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (size_t caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < kRounds; ++round) {
        for (size_t i = 0; i < samples.size(); ++i) {
          const Sample& sample = samples[(i + caller) % samples.size()];
          Module module;
          if (!sample.open(module, backends, 1 + caller).ok()) ++wrong;
          if (run(module) != sample.expected) ++wrong;
          if (round % 2 == 0) module.unload("forward");
          if (run(module) != sample.expected) ++wrong;
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

// Clones of one module share its program's bytes. The first is destroyed while the others run.
void test_clones(const std::vector<Sample>& samples, const BackendTable& backends) {
  for (const Sample& sample : samples) {
    std::vector<std::unique_ptr<Module>> clones;
    {
      Module first;
      CHECK(sample.open(first, backends, 3).ok() && first.load("forward").ok());
      for (size_t k = 0; k < kCallers; ++k) {
        clones.push_back(std::make_unique<Module>());
        CHECK(first.clone(*clones[k]).ok());
      }
    }
    std::atomic<int> wrong{0};
    std::vector<std::thread> callers;
    for (std::unique_ptr<Module>& clone : clones) {
      callers.emplace_back([&] {
        for (int round = 0; round < kRounds; ++round) {
          if (run(*clone) != sample.expected) ++wrong;
        }
        clone.reset();
      });
    }
    for (std::thread& caller : callers) caller.join();
    CHECK(wrong == 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CpuBackend cpu;
  BackendTable backends;
  CHECK(backends.add(CpuBackend::kId, &cpu).ok());
  std::vector<Sample> samples(static_cast<size_t>(argc));
  samples[0].file = large_file();
  for (int i = 1; i < argc; ++i) CHECK(read_file(argv[i], &samples[static_cast<size_t>(i)].file));
  for (Sample& sample : samples) {
    Module module;
    CHECK(sample.open(module, backends, 1).ok());
    sample.expected = run(module);
    CHECK(!sample.expected.empty());
    if (sample.expected.empty()) std::fprintf(stderr, "%s\n", module.message().text());
  }
  test_modules_of_their_own(samples, backends);
  test_clones(samples, backends);
  return test::check_result();
}
