// Times runs of a program whose delegates do nothing: `rushlight PROGRAM.pte CALLS [PLUGIN.so]`
// prints nanoseconds for a run. Without a plugin the backend "Nothing" is one in C++.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "rushlight/module/backend_library.h"
#include "rushlight/module/module.h"
#include "rushlight/platform/platform.h"

namespace {

using namespace rushlight;

// Looks at its arguments, as every backend must.
class Nothing final : public Backend {
 public:
  bool available() const override { return true; }
  Result<void*> init(BackendInit&) override { return static_cast<void*>(this); }
  Status execute(const BackendRun& run, void*, EValue* const* args, size_t n) override {
    if (n != 2 || run.n_inputs != 1) return Code::InvalidArgument;
    return args[0]->tensor().numel == args[1]->tensor().numel ? Status() : Code::InvalidArgument;
  }
  void destroy(void*) override {}
};

int complain(const char* text) {
  std::fprintf(stderr, "%s\n", text);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  Nothing nothing;
  BackendLibrary library;
  BackendTable table;
  Message message;
  if (argc == 3) {
    if (!table.add("Nothing", &nothing).ok()) return 1;
  } else if (!library.open(argv[3], message).ok() || !library.add_to(table, message).ok()) {
    return complain(message.text());
  }
  ModuleOptions options;
  options.backends = &table;
  options.threads = 1;
  Module module;
  if (!module.open(argv[1], options).ok()) return complain(module.message().text());
  Result<Method*> method = module.method("forward");
  if (!method.ok()) return complain(module.message().text());
  const std::vector<float> ones(4, 1.0f);
  const HostTensor input(DType::Float32, {4}, ones.data());
  const long calls = std::atol(argv[2]);
  uint64_t start = 0;
  for (long i = -calls / 10; i < calls; ++i) {  // the first to warm up
    if (i == 0) start = now_ns();
    if (!method.value()->set_input(0, input).ok() || !method.value()->execute().ok()) {
      return complain(method.value()->message().text());
    }
  }
  std::printf("%.3f\n", static_cast<double>(now_ns() - start) / static_cast<double>(calls));
  return 0;
}
