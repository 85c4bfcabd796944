// Runs a program without Python: `consumer model.pte 1 2 3 4` gives the first input those values
// (float32, in the shape (1, count)) and prints the first output.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "rushlight/module/module.h"

namespace {

int fail(const char* text) {
  std::fprintf(stderr, "%s\n", text);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  float x[64];
  const int32_t count = argc - 2;
  if (count < 1 || count > 64) return fail("usage: consumer model.pte number... (at most 64)");
  for (int32_t i = 0; i < count; ++i) x[i] = std::strtof(argv[i + 2], nullptr);

  rushlight::Module module;
  if (!module.open(argv[1]).ok()) return fail(module.message().text());
  auto loaded = module.method("forward");
  if (!loaded.ok()) return fail(module.message().text());
  rushlight::Method& forward = *loaded.value();

  rushlight::HostTensor input(rushlight::DType::Float32, {1, count}, x);
  if (!forward.set_input(0, input).ok() || !forward.execute().ok()) {
    return fail(forward.message().text());
  }
  if (!forward.output(0).is_tensor()) return fail("the first output is not a tensor");
  const rushlight::Tensor& y = forward.output(0).tensor();
  if (y.dtype != rushlight::DType::Float32) return fail("the first output is not float32");
  for (int64_t i = 0; i < y.numel; ++i) std::printf("%g ", y.as<float>()[i]);
  std::printf("\n");
  return 0;
}
