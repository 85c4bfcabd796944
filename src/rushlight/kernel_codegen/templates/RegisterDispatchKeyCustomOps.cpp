// Gives kernels of operators to PyTorch. ${generated_comment}
// clang-format off
#include <ATen/ATen.h>
#include <torch/library.h>

#include <tuple>

${ops_headers}

namespace at {
namespace {

${dispatch_anonymous_definitions}

${static_init_dispatch_registrations}

}  // namespace

namespace ${dispatch_namespace} {

${dispatch_namespaced_definitions}

}  // namespace ${dispatch_namespace}
}  // namespace at
