// Once a method is loaded, setting inputs and running it allocates nothing, with one thread or
// several.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "bundle_builder.h"
#include "check.h"
#include "count_allocations.h"
#include "delegates.h"
#include "engine_images.h"
#include "engine_kernels.h"
#include "engine_payload.h"
#include "kv_pages.h"
#include "rushlight/backends/cpu/cpu_backend.h"
#include "rushlight/backends/demo/demo_backend.h"
#include "rushlight/backends/xnnpack/xnnpack_backend.h"
#include "rushlight/delegate/plugin.h"
#include "rushlight/module/bundle.h"
#include "rushlight/module/module.h"
#include "rushlight/module/thread_pool.h"

extern "C" {
void* __real_mmap(void*, size_t, int, int, int, long);
void* __wrap_mmap(void* at, size_t size, int protection, int flags, int file, long offset) {
  ++rushlight::test::g_allocations;
  return __real_mmap(at, size, protection, flags, file, offset);
}
}

using namespace rushlight;
using namespace rushlight::test;

namespace {

// Sets inputs of ones, in memory that was allocated before.
void set_ones(Method& method, const std::vector<float>& ones) {
  for (size_t i = 0; i < method.n_inputs(); ++i) {
    const TensorMeta meta = method.meta().input(i).tensor;
    CHECK(meta.nbytes <= ones.size() * sizeof(float));
    CHECK(method.set_input(i, HostTensor(meta.dtype, meta.shape(), ones.data())).ok());
  }
}

void check_runs_without_allocation(Method& method, const char* what) {
  const std::vector<float> ones(1 << 14, 1.0f);
  g_allocations = 0;
  for (int run = 0; run < 3; ++run) {
    set_ones(method, ones);  // their memory may be reused by the end of a run
    CHECK(method.execute().ok());
  }
  set_ones(method, ones);
  Status status;
  while (status.ok()) status = method.step();
  CHECK(status.code() == Code::EndOfMethod && method.reset().ok());
  const int32_t wrong[] = {9, 9, 9, 9, 9, 9};
  if (method.n_inputs() > 0) {  // formatting an error does not allocate either
    CHECK(!method.set_input(0, HostTensor(DType::Int8, {wrong, 6}, ones.data())).ok());
  }
  if (g_allocations != 0) std::fprintf(stderr, "%s: %zu allocations\n", what, g_allocations.load());
  CHECK(g_allocations == 0);
}

void test_method() {
  Loaded loaded(file_of(add_plan()));
  g_allocations = 0;
  MemoryLoader loader(loaded.program.image().data(), loaded.program.image().size());
  Program program;
  CHECK(program.load(loader).ok() && program.method_meta("forward").ok());
  CHECK(g_allocations == 0);  // verifying does not allocate either
  CHECK(loaded.load().ok());
  check_runs_without_allocation(loaded.method, "test kernels");
  Module module;
  ModuleOptions options;
  options.kernels = &test_kernels();
  options.threads = 4;
  const Span<const uint8_t> image = loaded.program.image();
  CHECK(module.open_memory(image.data(), image.size(), options).ok());
  Result<Method*> method = module.method("forward");
  CHECK(method.ok() && module.threads() == PoolWorkers(4).count());
  if (method.ok()) check_runs_without_allocation(*method.value(), "test kernels on threads");
}

// A run that notes its instructions, one that fails, an input that is refused, and a crash.
void test_failure_report() {
  Plan plan = add_plan();
  plan.call("test::always_fails", {plan.outputs[0]}, "");
  FailureReport report;
  for (const std::vector<uint8_t>& file : {file_of(add_plan()), file_of(plan)}) {
    Loaded loaded(file);
    MethodOptions options = {};
    options.failure.report = &report;
    CHECK(loaded.load("forward", options).ok());
    if (loaded.method.n_instructions() == 1) {
      check_runs_without_allocation(loaded.method, "with a report");
      continue;
    }
    const std::vector<float> ones(6, 1.0f);
    set_ones(loaded.method, ones);
    g_allocations = 0;
    CHECK(!loaded.method.execute().ok() && report.has_failure());
    report.clear();
    CHECK(loaded.method.report_crash(11, 0, true) == &report && report.has_failure());
    CHECK(g_allocations == 0);
  }
}

// Backends in C++, and one behind the C struct; also with the comparison of memory.
class CopyingBackend : public Backend {
 public:
  bool available() const override { return true; }
  Result<void*> init(BackendInit&) override { return static_cast<void*>(this); }
  Status execute(const BackendRun& run, void*, EValue* const* args, size_t) override {
    RL_TRY(run.resize(args[1]->tensor(), args[0]->tensor().shape()));
    copy_elements(args[0]->tensor(), args[1]->tensor());
    return {};
  }
  void destroy(void*) override {}
};

int32_t plugin_init(void*, const rl_init_v1*, void**) { return RL_OK; }

int32_t plugin_execute(void*, void*, const rl_call_v1* call) {
  rl_value_v1 x = {}, y = {};
  x.size = y.size = sizeof(x);
  if (call->host->value(call->context, 0, &x) != RL_OK) return RL_INTERNAL;
  if (call->host->resize(call->context, 1, x.sizes, x.rank) != RL_OK) return RL_INTERNAL;
  if (call->host->value(call->context, 1, &y) != RL_OK) return RL_INTERNAL;
  std::memcpy(y.data, x.data, x.nbytes);
  return RL_OK;
}

// A test case of a bundled program, from the second on: passed, failed, and not there.
void test_bundle() {
  const std::vector<uint8_t> file = add_bundle();
  Module module;
  ModuleOptions options;
  options.kernels = &test_kernels();
  CHECK(module.open_memory(file.data(), file.size(), options).ok());
  CaseReport report;
  CHECK(verify(module, "forward", 0, report).ok() && report.passed);
  g_allocations = 0;
  for (size_t i = 0; i < 3; ++i) (void)verify(module, "forward", i, report);
  CHECK(g_allocations == 0);
}

void test_delegates() {
  const rl_backend_v1 plain = {RL_BACKEND_V1_VERSION, sizeof(plain),  "Plugin", nullptr, nullptr,
                               plugin_init,           plugin_execute, nullptr};
  CopyingBackend copying;
  PluginBackend plugin;
  Message message;
  BackendTable table;
  CHECK(plugin.adopt(&plain, message).ok() && table.add(plugin.id(), &plugin).ok());
  CHECK(table.add("Copying", &copying).ok());
  DemoBackend demo;
  CHECK(table.add(DemoBackend::kId, &demo).ok());
  const std::string sine = "demo 1\nin 1\n%1 = sin %0 : 2\nout %1\n";
  for (const char* id : {"Plugin", "Copying", DemoBackend::kId}) {
    for (const bool checks : {false, true}) {
      Loaded loaded(one_delegate_file(id, {sine.begin(), sine.end()}));
      MethodOptions options = {};
      options.backends = &table;
      options.check_backends = checks;
      loaded.allow_structures(2048);
      CHECK(loaded.load("forward", options).ok());
      check_runs_without_allocation(loaded.method, id);
    }
  }
}

// A graph of the cpu backend prepares its operators again for another pair of sizes.
void test_dynamic_sizes() {
  PoolWorkers two(2);
  for (Workers* workers : {static_cast<Workers*>(nullptr), static_cast<Workers*>(&two)}) {
    EngineDelegate delegate(join_graph(), workers);
    CHECK(delegate.loaded().ok());
    EngineTensor both({11, 4}, 44), sums({6}, 6);
    EngineTensor small({1, 4}, 24), large({5, 4}, 24), empty({0, 4}, 0), over({7, 4}, 28);
    const auto args = [&](EngineTensor& x, EngineTensor& y) {
      return std::vector<EValue*>{x.value(), y.value(), both.value(), sums.value()};
    };
    const std::vector<std::vector<EValue*>> runs = {args(small, large), args(large, empty),
                                                    args(large, small), args(small, large)};
    const std::vector<EValue*> refused = args(over, small);
    CHECK(delegate.run(runs[1], 2).ok());
    g_allocations = 0;
    for (int round = 0; round < 3; ++round) {
      for (const std::vector<EValue*>& run : runs) CHECK(delegate.run(run, 2).ok());
      CHECK(!delegate.run(refused, 2).ok());
    }
    CHECK(g_allocations == 0);
  }
}

// A recurrent layer reads sequences of other lengths: its scratch is that of the longest.
void test_recurrent() {
  PoolWorkers two(2);
  for (Workers* workers : {static_cast<Workers*>(nullptr), static_cast<Workers*>(&two)}) {
    EngineDelegate delegate(rnn_graph(60), workers);
    CHECK(delegate.loaded().ok());
    EngineTensor longest({60, 2, 5}, 600), shorter({7, 2, 5}, 70), one({1, 2, 5}, 10);
    EngineTensor weights({144}, 144), sequence({60, 2, 4}, 480), last({1, 2, 4}, 8);
    std::vector<EValue*> args = {nullptr, weights.value(), sequence.value(), last.value()};
    const auto run = [&](EngineTensor& x) {
      args[0] = x.value();
      return delegate.run(args, 2).ok() && sequence.tensor().sizes[0] == x.tensor().sizes[0];
    };
    CHECK(run(shorter));
    g_allocations = 0;
    for (int round = 0; round < 3; ++round) CHECK(run(longest) && run(one) && run(shorter));
    CHECK(g_allocations == 0);
  }
}

void test_quantized_products() {
  PoolWorkers two(2);
  EngineDelegate delegate(QuantizedGraph(), &two);
  CHECK(delegate.loaded().ok());
  EngineTensor few({2, 40}, 80), many({9, 40}, 360), w({1280}, 1280);
  std::vector<EValue*> args = {few.value(), w.value()};
  std::deque<EngineTensor> results;
  for (uint32_t i = 0; i < QuantizedGraph().n_outputs; ++i) {
    results.emplace_back(std::vector<int32_t>{9, 20}, 180);
    args.push_back(results.back().value());
  }
  CHECK(delegate.run(args, 2).ok());
  args[0] = many.value();
  g_allocations = 0;
  for (int round = 0; round < 4; ++round) {
    CHECK(delegate.run(args, 2).ok());
    args[0] = round % 2 == 0 ? few.value() : many.value();
  }
  CHECK(g_allocations == 0);
}

void test_quantized_images() {
  PoolWorkers two(2);
  EngineDelegate delegate(ImageGraph(), &two);
  CHECK(delegate.loaded().ok());
  EngineTensor low({1, 2, 7, 20}, 280), high({1, 9, 7, 20}, 1260), w({5760}, 5760);
  EngineTensor out({1, 5, 4, 24}, 480);
  std::vector<EValue*> args = {low.value(), w.value(), out.value()};
  CHECK(delegate.run(args, 2).ok());
  g_allocations = 0;
  for (int round = 0; round < 4; ++round) {
    args[0] = round % 2 == 0 ? high.value() : low.value();
    CHECK(delegate.run(args, 2).ok());
  }
  CHECK(g_allocations == 0);
}

// Calls of a kernel of the user's own get other sizes and numbers.
void test_own_kernels() {
  const MixTable kernels;
  EngineDelegate delegate(KernelGraph(), nullptr, size_t{1} << 16, kernels.table());
  CHECK(delegate.loaded().ok());
  EngineTensor few({2, 4}, 8), many({6, 4}, 24), out({6, 4}, 24), total({1}, 1);
  std::vector<uint8_t> memory(256);
  Allocator scratch(memory.data(), memory.size());
  std::vector<EValue*> args = {few.value(), out.value(), total.value()};
  CHECK(delegate.run(args, 1, &scratch).ok());
  g_allocations = 0;
  for (int round = 0; round < 4; ++round) {
    args[0] = round % 2 == 0 ? many.value() : few.value();
    scratch.reset();
    CHECK(delegate.run(args, 1, &scratch).ok());
  }
  CHECK(g_allocations == 0);
}

// Programs of the golden folder, with the portable kernels and the cpu backend.
void test_golden(const char* path, size_t threads) {
  CpuBackend cpu;
  XnnpackBackend xnnpack;
  BackendTable table;
  CHECK(table.add(CpuBackend::kId, &cpu).ok());
  CHECK(table.add(XnnpackBackend::kId, &xnnpack).ok());
  Module module;
  ModuleOptions options;
  options.backends = &table;
  options.threads = threads;
  CHECK(module.open(path, options).ok());
  Result<Method*> method = module.method("forward");
  if (!method.ok()) std::fprintf(stderr, "%s\n", module.message().text());
  CHECK(method.ok());
  if (!method.ok()) return;
  const KvPages pages;
  method.value()->set_kv_cache(pages.cache());
  if (std::strstr(path, "unbounded") != nullptr) {  // these allocate memory when they need it
    const std::vector<float> ones(1 << 14, 1.0f);
    set_ones(*method.value(), ones);
    CHECK(method.value()->execute().ok());
  }
  check_runs_without_allocation(*method.value(), path);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t before = g_allocations;
  void* volatile memory = std::malloc(16);
  std::free(memory);
  CHECK(g_allocations == before + 1);  // the counter works
  test_method();
  test_bundle();
  test_failure_report();
  test_delegates();
  test_dynamic_sizes();
  test_recurrent();
  test_quantized_products();
  test_quantized_images();
  test_own_kernels();
  for (int i = 1; i < argc; ++i) {
    for (const size_t threads : {1, 2, 3}) test_golden(argv[i], threads);
  }
  return check_result();
}
