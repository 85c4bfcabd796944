// Calls the kernels. ${generated_comment}
// clang-format off
#pragma once

#include <tuple>

#include <executorch/codegen/macros.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/platform/assert.h>

${static_dispatch_extra_headers}

namespace torch::executor {

${Functions_declarations}

}  // namespace torch::executor
