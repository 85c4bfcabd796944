// A shared library with a Rushlight of its own, in which aten::add.out is this file's: self +
// FACTOR * other. Linked into a program (own_kernels.cpp), the same.
#include "copy.h"

#include <cstdio>

#include "rushlight/module/module.h"

namespace {

using rushlight::Code;
using rushlight::EValue;
using rushlight::KernelContext;
using rushlight::Status;
using rushlight::Tensor;

Status add(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const Tensor& other = args[1]->tensor();
  Tensor& out = args[3]->tensor();
  if (self.dtype != rushlight::DType::Float32 || other.dtype != self.dtype ||
      other.numel != self.numel) {
    return ctx.fail(Code::InvalidArgument, "takes float32 of one shape");
  }
  if (Status status = ctx.resize_like(out, self); !status.ok()) return status;
  ctx.parallel(self.numel, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      out.as<float>()[i] = self.as<float>()[i] + FACTOR * other.as<float>()[i];
    }
  });
  return {};
}

const rushlight::Kernel kKernels[] = {{"aten::add.out", "ttsw=", add}};

// The tables of this copy: its own kernel, and the default backends, if it has any.
const rushlight::KernelTable& kernels() {
  static rushlight::KernelTable table;
  static const bool filled = table.add({kKernels, 1}).ok();
  (void)filled;
  return table;
}

}  // namespace

extern "C" const void* copy_backends(void) { return rushlight::default_backends(); }

extern "C" bool copy_run(const char* path, const float* self, const float* other, float* out,
                         char failure[COPY_FAILURE]) {
  rushlight::ModuleOptions options;
  options.kernels = &kernels();
  rushlight::Module module;
  const auto failed = [failure](const rushlight::Message& why) {
    std::snprintf(failure, COPY_FAILURE, "%s", why.text());
    return false;
  };
  if (!module.open(path, options).ok()) return failed(module.message());
  auto loaded = module.method("forward");
  if (!loaded.ok()) return failed(module.message());
  rushlight::Method& forward = *loaded.value();
  const rushlight::HostTensor a(rushlight::DType::Float32, {2, 3}, self);
  const rushlight::HostTensor b(rushlight::DType::Float32, {2, 3}, other);
  if (!forward.set_input(0, a).ok() || !forward.set_input(1, b).ok() || !forward.execute().ok()) {
    return failed(forward.message());
  }
  const rushlight::Tensor& sum = forward.output(0).tensor();
  for (int64_t i = 0; i < sum.numel; ++i) out[i] = sum.as<float>()[i];
  return true;
}
