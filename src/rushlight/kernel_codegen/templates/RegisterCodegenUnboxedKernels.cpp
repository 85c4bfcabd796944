// Registers the kernels. ${generated_comment}
// clang-format off
#include <exception>
#include <vector>

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/event_tracer_hooks.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/kernel/kernel_includes.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/profiler.h>

#include "${fn_header}"

namespace torch::executor {
namespace {

const Kernel kernels[] = {
    ${unboxed_kernels}
    Kernel(),  // the end, so that the list is never empty
};
[[maybe_unused]] const Error registered =
    register_kernels({kernels, sizeof(kernels) / sizeof(kernels[0]) - 1});

}  // namespace
}  // namespace torch::executor
