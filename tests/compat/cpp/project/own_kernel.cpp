// Two kernels as they are written for ExecuTorch: from a function with types, and from one over a
// stack of values.
#include <executorch/extension/kernel_util/make_boxed_from_unboxed_functor.h>
#include <executorch/runtime/kernel/kernel_includes.h>

using executorch::aten::Tensor;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::Kernel;
using executorch::runtime::KernelRuntimeContext;
using executorch::runtime::Span;

namespace {

// compat::scaled.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)
Tensor& scaled_out(KernelRuntimeContext& ctx, const Tensor& x, double factor, Tensor& out) {
  ET_KERNEL_CHECK(ctx, executorch::runtime::resize_tensor(out, x.sizes()) == Error::Ok,
                  InvalidArgument, out);
  ET_KERNEL_CHECK_MSG(ctx, factor > 0, InvalidArgument, out, "factor is %g", factor);
  ET_SWITCH_FLOATHBF16_TYPES(x.scalar_type(), ctx, "scaled.out", CTYPE, [&] {
    for (ssize_t i = 0; i < x.numel(); ++i) {
      out.mutable_data_ptr<CTYPE>()[i] =
          static_cast<CTYPE>(static_cast<double>(x.const_data_ptr<CTYPE>()[i]) * factor);
    }
  });
  return out;
}

// compat::next.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
void next_out(KernelRuntimeContext& ctx, Span<EValue*> stack) {
  const Tensor& x = stack[0]->toTensor();
  Tensor& out = stack[1]->toTensor();
  if (executorch::runtime::resize_tensor(out, x.sizes()) != Error::Ok) {
    return ctx.fail(Error::InvalidArgument);
  }
  for (ssize_t i = 0; i < x.numel(); ++i) {
    out.mutable_data_ptr<float>()[i] = x.const_data_ptr<float>()[i] + 1.0f;
  }
}

[[maybe_unused]] const auto registered =
    executorch::runtime::register_kernel(Kernel("compat::next.out", next_out));

}  // namespace

EXECUTORCH_LIBRARY(compat, "scaled.out", scaled_out);
