// A method that crashes leaves its report: in a kernel, a thread of the pool, a delegate, and a
// method that a backend of another runs. Each crash happens in a child process.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>

#include "check.h"
#include "delegates.h"
#include "rushlight/core/host_tensor.h"
#include "rushlight/module/debug/crash_report.h"
#include "rushlight/module/files/failure_file.h"
#include "rushlight/module/module.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

constexpr char kPath[] = "crash_report.bin";

volatile int g_zero = 0;

void write_nowhere() { *reinterpret_cast<volatile int*>(uintptr_t{64} + g_zero) = 1; }

Status crash(KernelContext&, EValue* const*) {
  write_nowhere();
  return {};
}

// Destroys its arguments first.
Status crash_badly(KernelContext& context, EValue* const* args) {
  args[0]->t = reinterpret_cast<Tensor*>(uintptr_t{64} + g_zero);
  return crash(context, args);
}

Status end_process(KernelContext&, EValue* const*) { std::abort(); }

Status divide(KernelContext&, EValue* const* args) {
  raise(SIGFPE);  // not every processor raises it
  args[0]->tensor().as<float>()[0] = 0;
  return {};
}

// Crashes in a thread of the pool: the caller waits for it.
Status crash_in_pool(KernelContext& context, EValue* const*) {
  const auto caller = std::this_thread::get_id();
  std::atomic<int> begun{0};
  context.parallel(2, 1, [&](int64_t, int64_t) {
    ++begun;
    while (begun.load() < 2) std::this_thread::yield();
    if (std::this_thread::get_id() != caller) write_nowhere();
    while (true) pause();
  });
  return {};
}

int recurse(int n) {
  volatile char block[4096];
  block[0] = static_cast<char>(n);
  return n == 0 ? 0 : recurse(n + 1) + block[0];
}

Status fill_stack(KernelContext&, EValue* const*) {
  return recurse(1) == 0 ? Code::Internal : Code::Ok;
}

Status wait_forever(KernelContext&, EValue* const*) {
  while (true) pause();
}

const KernelTable& kernels() {
  static const Kernel kKernels[] = {
      {"aten::add.out", "ttsw=", add_out}, {"test::crash", "t", crash},
      {"test::abort", "t", end_process},   {"test::divide", "w", divide},
      {"test::pool", "t", crash_in_pool},  {"test::stack", "t", fill_stack},
      {"test::wait", "t", wait_forever},   {"test::badly", "t", crash_badly},
  };
  static KernelTable table;
  static const bool filled = table.add(kKernels).ok();
  CHECK(filled);
  return table;
}

std::vector<uint8_t> file_with(const char* op) {
  Plan plan = add_plan();
  plan.call(op, {plan.outputs[0]}, "");
  return file_of(plan);
}

// A module with a report of its own, ready to run.
class Running {
 public:
  explicit Running(std::vector<uint8_t> file, const BackendTable* backends = nullptr)
      : file_(std::move(file)) {
    ModuleOptions options;
    options.kernels = &kernels();
    options.backends = backends;
    options.failure.report = &report_;
    options.threads = 2;
    CHECK(module_.open_memory(file_.data(), file_.size(), options).ok());
    Result<Method*> method = module_.method("forward");
    CHECK(method.ok());
    method_ = method.value();
    const TensorMeta meta = method_->meta().input(0).tensor;
    CHECK(method_->set_input(0, HostTensor(DType::Float32, meta.shape(), ones_)).ok());
  }
  Method& method() { return *method_; }
  Status run() { return method_->execute(); }

 private:
  std::vector<uint8_t> file_;
  FailureReport report_;
  Module module_;
  Method* method_ = nullptr;
  const float ones_[6] = {1, 1, 1, 1, 1, 1};
};

// Runs in a child process, which ends by a signal; returns it, or -1.
int run_in_child(const std::function<void()>& body) {
  std::remove(kPath);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    alarm(20);
    body();
    _exit(check_result() == 0 ? 0 : 99);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

FailureReport read_report() {
  std::ifstream in(kPath, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  FailureReport report;
  CHECK(bytes.size() == sizeof(report));
  if (bytes.size() == sizeof(report)) std::memcpy(&report, bytes.data(), sizeof(report));
  FailureReport sealed = report;
  sealed.seal();
  CHECK(sealed.checksum == report.checksum);
  return report;
}

void install() {
  Message message;
  CHECK(install_crash_report(kPath, message).ok());
}

void test_kernels_crash() {
  const struct {
    const char* op;
    int signal;
  } kCases[] = {{"test::crash", SIGSEGV}, {"test::abort", SIGABRT}, {"test::divide", SIGFPE},
                {"test::pool", SIGSEGV},  {"test::stack", SIGSEGV}, {"test::badly", SIGSEGV}};
  for (const auto& one : kCases) {
    const int signal = run_in_child([&] {
      Running running(file_with(one.op));
      install();
      (void)running.run();
    });
    CHECK(signal == one.signal);
    const FailureReport report = read_report();
    CHECK(report.signal == static_cast<uint32_t>(one.signal));
    CHECK(report.phase == static_cast<uint8_t>(FailurePhase::Run));
    CHECK(report.method_index == 0 && report.instruction == 1 && report.n_events == 2);
    if (one.op != std::string("test::badly")) {
      CHECK(std::string(report.method) == "forward" && std::string(report.name) == one.op);
      CHECK(report.n_values == 1 && report.values[0].sizes[1] == 3);
    }
    if (one.op == std::string("test::crash")) CHECK(report.address == 64);
  }
}

void test_other_handlers() {
  // Nothing runs: there is no report, and the signal ends the process as before.
  CHECK(run_in_child([] {
          install();
          write_nowhere();
        }) == SIGSEGV);
  CHECK(access(kPath, F_OK) != 0);
  // The handler that was there before runs after ours, and also if nothing of ours runs.
  for (const bool runs : {true, false}) {
    CHECK(run_in_child([&] {
            struct sigaction before = {};
            before.sa_handler = [](int) { _exit(42); };
            sigaction(SIGSEGV, &before, nullptr);
            Running running(file_with("test::crash"));
            install();
            install();  // a second time: it must not become its own predecessor
            if (runs) (void)running.run();
            write_nowhere();
          }) == -42);
    CHECK((access(kPath, F_OK) == 0) == runs);
  }
  // A signal that is sent to the process while a method runs.
  CHECK(run_in_child([] {
          Running running(file_with("test::wait"));
          install();
          std::thread sender([thread = pthread_self()] {
            usleep(50000);
            pthread_kill(thread, SIGABRT);
          });
          (void)running.run();
          sender.join();
        }) == SIGABRT);
  CHECK(std::string(read_report().name) == "test::wait");
}

void test_two_threads() {
  const int signal = run_in_child([] {
    Running waits(file_with("test::wait"));
    Running crashes(file_with("test::crash"));
    install();
    std::thread other([&] { (void)waits.run(); });
    usleep(20000);
    (void)crashes.run();
    other.join();
  });
  CHECK(signal == SIGSEGV);
  CHECK(std::string(read_report().name) == "test::crash");
}

// A backend that runs another method, then crashes itself if that is wanted.
class NestingBackend : public Backend {
 public:
  Method* inner = nullptr;
  bool crashes_after = false;
  bool available() const override { return true; }
  Result<void*> init(BackendInit&) override { return static_cast<void*>(this); }
  Status execute(const BackendRun& run, void*, EValue* const*, size_t) override {
    run.place->enter(31);
    if (inner != nullptr) (void)inner->execute();
    if (crashes_after) write_nowhere();
    return {};
  }
  void destroy(void*) override {}
};

void test_nested() {
  for (const bool crashes_after : {false, true}) {
    const int signal = run_in_child([&] {
      NestingBackend backend;
      BackendTable table;
      CHECK(table.add("Nesting", &backend).ok());
      Running inner(crashes_after ? file_of(add_plan()) : file_with("test::crash"));
      backend.inner = &inner.method();
      backend.crashes_after = crashes_after;
      Running outer(one_delegate_file("Nesting", {}), &table);
      install();
      (void)outer.run();
    });
    CHECK(signal == SIGSEGV);
    const FailureReport report = read_report();
    CHECK(std::string(report.name) == (crashes_after ? "Nesting" : "test::crash"));
    CHECK(report.instruction == (crashes_after ? 0 : 1));
    CHECK(std::string(report.place) == (crashes_after ? "31" : ""));
  }
}

// An input that points nowhere.
void test_input() {
  CHECK(run_in_child([] {
          Running running(file_with("test::wait"));
          install();
          float* nowhere = reinterpret_cast<float*>(uintptr_t{4096});
          (void)running.method().set_input(0, HostTensor(DType::Float32, {2, 3}, nowhere));
        }) == SIGSEGV);
  const FailureReport report = read_report();
  CHECK(report.phase == static_cast<uint8_t>(FailurePhase::Input) && report.input == 0);
}

void test_pipe_and_paths() {
  int ends[2];
  CHECK(pipe(ends) == 0);
  CHECK(run_in_child([&] {
          Running running(file_with("test::crash"));
          Message message;
          CHECK(install_crash_report(ends[1], message).ok());
          (void)running.run();
        }) == SIGSEGV);
  FailureReport report;
  CHECK(read(ends[0], &report, sizeof(report)) == static_cast<ssize_t>(sizeof(report)));
  CHECK(std::string(report.name) == "test::crash");
  close(ends[0]);
  close(ends[1]);
  Message message;
  CHECK(install_crash_report("/nowhere/at/all", message).code() == Code::AccessFailed);
  CHECK(install_crash_report(12345, message).code() == Code::AccessFailed);
  const std::string longest(5000, 'x');
  CHECK(install_crash_report(longest.c_str(), message).code() == Code::AccessFailed);
}

// What is no crash is written by the hook, each time, and clones have reports of their own.
void test_failure_file() {
  std::remove(kPath);
  FailureFile file(kPath);
  ModuleOptions options;
  options.kernels = &test_kernels();
  options.failure = file.hook();
  Plan plan = add_plan();
  plan.call("test::always_fails", {plan.outputs[0]}, "");
  const std::vector<uint8_t> bytes = file_of(plan);
  Module module, clone, other;
  CHECK(module.open_memory(bytes.data(), bytes.size(), options).ok());
  CHECK(!module.method("nothing").ok() && file.is_written());
  CHECK(read_report().phase == static_cast<uint8_t>(FailurePhase::Load));
  Method& method = *module.method("forward").value();
  CHECK(!method.execute().ok() && read_report().code == static_cast<uint32_t>(Code::InvalidState));
  CHECK(module.method("forward").ok() && file.is_written());  // it is loaded: nothing new
  CHECK(module.clone(clone).ok() && clone.options().failure.report == nullptr);
  FailureReport own;
  other.set_failure_hook({&own});
  CHECK(module.clone(other).ok() && !other.method("forward").value()->execute().ok());
  CHECK(own.has_failure());
  options.memory_limit = 100;
  Module small;
  CHECK(small.open_memory(bytes.data(), bytes.size(), options).ok());
  CHECK(small.load("forward").code() == Code::OutOfResources);
  const FailureReport report = read_report();
  CHECK(report.n_memories == 1 && report.memories[0].kind == FailureMemory::Limit);
  CHECK(report.memories[0].available == 100 && report.memories[0].wanted > 100);
  std::remove(kPath);
}

}  // namespace

int main() {
  test_kernels_crash();
  test_other_handlers();
  test_two_threads();
  test_nested();
  test_input();
  test_pipe_and_paths();
  test_failure_file();
  std::remove(kPath);
  return check_result();
}
