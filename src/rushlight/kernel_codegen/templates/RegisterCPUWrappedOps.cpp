// Makes operators of PyTorch of kernels on the runtime's tensors. ${generated_comment}
// clang-format off
#include <executorch/extension/aten_util/make_aten_functor_from_et_functor.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>

#include <ATen/ATen.h>
#include <torch/library.h>

#include <tuple>

#include "NativeFunctions.h"

namespace {

using torch::executor::KernelRuntimeContext;

[[maybe_unused]] void check(const KernelRuntimeContext& context, const char* name) {
  TORCH_CHECK(context.failure_state() == torch::executor::Error::Ok, name, " failed: ",
              executorch::runtime::to_string(context.failure_state()));
}

${functions}

}  // namespace

${registrations}
