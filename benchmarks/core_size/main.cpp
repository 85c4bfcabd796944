// The smallest program that uses the runtime: loads a method from memory and runs it. What links
// into it is what a device pays for the core (benchmarks/core_size.py); with WITH_BACKENDS, also
// for calls of delegates.
#include "rushlight/method/method.h"

extern "C" {
extern const unsigned char program_image[];
extern const unsigned long program_size;
int run_model(const float* input, int n);
}

#if !defined(__unix__)
// What a C++ library would bring; nothing is ever deleted.
void operator delete(void*) noexcept {}
void operator delete(void*, size_t) noexcept {}
extern "C" void __cxa_pure_virtual() { __builtin_trap(); }
#endif

namespace {

alignas(16) unsigned char structures_memory[8192];
alignas(16) unsigned char arena_memory[4096];
rushlight::KernelTable kernels;
#if defined(WITH_BACKENDS)
rushlight::BackendTable backends;
#endif

}  // namespace

int run_model(const float* input, int n) {
  using namespace rushlight;
  MemoryLoader loader(program_image, program_size);
  Program program;
  if (!program.load(loader).ok()) return 1;
  Allocator structures(structures_memory, sizeof(structures_memory));
  const Span<uint8_t> arenas[] = {{arena_memory, sizeof(arena_memory)}};
  MethodMemory memory = {};
  memory.structures = &structures;
  memory.arenas = {arenas, 1};
  MethodOptions options = {};
  options.kernels = &kernels;
#if defined(WITH_BACKENDS)
  options.backends = &backends;
#endif
  Method method;
  if (!method.load(program, "forward", memory, options).ok()) return method.message().text()[0];

  int32_t sizes[] = {n};
  int32_t strides[] = {1};
  const uint8_t dim_order[] = {0};
  Tensor tensor;
  tensor.data = const_cast<float*>(input);
  tensor.sizes = sizes;
  tensor.strides = strides;
  tensor.dim_order = dim_order;
  tensor.numel = n;
  tensor.rank = 1;
  if (!method.set_input(0, tensor).ok() || !method.execute().ok()) return 2;
  return static_cast<int>(method.output(0).tensor().as<float>()[0]);
}
