// What an application looks like: opens a program, runs it, looks at the result. Compiled with the
// compiler's own defaults (exceptions, RTTI).
#include <rushlight/module/module.h>

#include <cstdio>

namespace {

// An application may bring its own tracer, with RTTI.
class CountingTracer : public rushlight::Tracer {
 public:
  int instructions = 0;

  void begin(const char*) override {}
  void end(const char*) override {}
  void begin_instruction(uint32_t, uint32_t, rushlight::InstructionKind,
                         rushlight::StringView) override {
    ++instructions;
  }
  void end_instruction(uint32_t, uint32_t, rushlight::EValue* const*, uint32_t) override {}
  void delegate_event(const char*, int64_t, uint64_t, uint64_t) override {}
};

class OwnAllocator : public rushlight::Allocator {};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  CountingTracer tracer;
  OwnAllocator unused;
  rushlight::ModuleOptions options;
  options.tracer = &tracer;
  rushlight::Module module;
  if (!module.open(argv[1], options).ok()) return 1;
  if (rushlight::default_kernels() == nullptr) return 0;  // installed without kernels
  auto method = module.method("forward");
  if (!method.ok()) {
    std::fprintf(stderr, "%s\n", module.message().text());
    return 1;
  }
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
