// A kernel as it is written for ExecuTorch: one source for the runtime and for PyTorch.
#include <executorch/runtime/kernel/kernel_includes.h>

namespace own::native {

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::runtime::Error;
using executorch::runtime::KernelRuntimeContext;

Tensor& scaled_out_impl(KernelRuntimeContext& context, const Tensor& x, double factor,
                        Tensor& out) {
  ET_KERNEL_CHECK_MSG(context, x.scalar_type() == ScalarType::Float, InvalidArgument, out,
                      "x must be float32");
  ET_KERNEL_CHECK(context, executorch::runtime::resize_tensor(out, x.sizes()) == Error::Ok,
                  InvalidArgument, out);
  const auto* from = x.const_data_ptr<float>();
  auto* to = out.mutable_data_ptr<float>();
  for (ssize_t i = 0; i < x.numel(); ++i) to[i] = from[i] * static_cast<float>(factor);
  return out;
}

Tensor& scaled_out_impl(const Tensor& x, double factor, Tensor& out) {
  KernelRuntimeContext context{};
  scaled_out_impl(context, x, factor, out);
#ifdef USE_ATEN_LIB
  TORCH_CHECK(context.failure_state() == Error::Ok, "scaled.out failed");
#endif
  return out;
}

#ifdef USE_ATEN_LIB
Tensor scaled_impl(const Tensor& x, double factor) {
  Tensor out = at::empty_like(x);
  return scaled_out_impl(x, factor, out);
}
#endif

}  // namespace own::native
