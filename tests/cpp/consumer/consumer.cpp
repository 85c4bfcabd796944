// An example of an application: opens programs, runs them, checks the results. Compiled with the
// compiler's own defaults (exceptions, RTTI).
//
//   consumer with|without add.pte delegated.pte...
//
// `without`: the library that it is linked with has no backends, and reports that.
#include <rushlight/module/module.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

// An application can use its own tracer, with RTTI.
class CountingTracer : public rushlight::Tracer {
 public:
  int instructions = 0;

  void begin(const char*, rushlight::StringView) override {}
  void end(const char*) override {}
  void begin_instruction(uint32_t, uint32_t, rushlight::InstructionKind,
                         rushlight::StringView) override {
    ++instructions;
  }
  void end_instruction(const rushlight::InstructionArguments*) override {}
  void delegate_event(rushlight::DelegateId, uint64_t, uint64_t,
                      rushlight::Span<const uint8_t>) override {}
  bool wants_delegate_value(rushlight::DelegateId) const override { return false; }
  void delegate_value(rushlight::DelegateId, const rushlight::DelegateValue&) override {}
  void output(const rushlight::EValue&) override {}
};

class OwnAllocator : public rushlight::Allocator {};

int complain(const char* text) {
  std::fprintf(stderr, "%s\n", text);
  return 1;
}

int add(const char* path) {
  CountingTracer tracer;
  OwnAllocator unused;
  rushlight::ModuleOptions options;
  options.tracer = &tracer;
  rushlight::Module module;
  if (!module.open(path, options).ok()) return complain(module.message().text());
  auto method = module.method("forward");
  if (!method.ok()) return complain(module.message().text());
  const float ones[6] = {1, 1, 1, 1, 1, 1};
  const rushlight::HostTensor input(rushlight::DType::Float32, {2, 3}, ones);
  for (size_t i = 0; i < 2; ++i) {
    if (!method.value()->set_input(i, input).ok()) return 1;
  }
  if (!method.value()->execute().ok()) return 1;
  const float result = method.value()->output(0).tensor().as<float>()[5];
  std::printf("1 + 1 = %g, %d instructions\n", static_cast<double>(result), tracer.instructions);
  return result == 2.0f && tracer.instructions == 1 && unused.left() == 0 ? 0 : 1;
}

// Runs a program of one delegate on inputs of ones.
int run_delegate(const char* path, bool has_backends) {
  rushlight::Module module;
  if (!module.open(path).ok()) return complain(module.message().text());
  auto loaded = module.method("forward");
  if (loaded.ok() != has_backends) return complain(module.message().text());
  if (!has_backends) return std::strstr(module.message().text(), "no backend") == nullptr;
  rushlight::Method& method = *loaded.value();
  for (size_t i = 0; i < method.n_inputs(); ++i) {
    const rushlight::TensorMeta meta = method.meta().input(i).tensor;
    const std::vector<float> ones(meta.nbytes / sizeof(float), 1.0f);
    const rushlight::HostTensor input(meta.dtype, meta.shape(), ones.data(), meta.dim_order);
    if (!method.set_input(i, input).ok()) return complain(method.message().text());
  }
  if (!method.execute().ok()) return complain(method.message().text());
  const rushlight::Tensor& result = method.output(0).tensor();
  const float first = result.numel > 0 ? result.as<float>()[0] : 0.0f;
  std::printf("%s: %g\n", path, static_cast<double>(first));
  return std::isfinite(first) && first != 0.0f ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  if (rushlight::default_kernels() == nullptr) return 0;  // installed without kernels
  const bool has_backends = std::strcmp(argv[1], "with") == 0;
  if ((rushlight::default_backends() != nullptr) != has_backends) return complain("backends");
  if (add(argv[2]) != 0) return 1;
  for (int i = 3; i < argc; ++i) {
    if (run_delegate(argv[i], has_backends) != 0) return complain(argv[i]);
  }
  return 0;
}
