// Kernels over arguments of every kind, from functions with types and over stacks of values.
#include <executorch/extension/kernel_util/make_boxed_from_unboxed_functor.h>
#include <executorch/runtime/kernel/kernel_includes.h>

#include <stdexcept>

using executorch::aten::ArrayRef;
using executorch::aten::optional;
using executorch::aten::Scalar;
using executorch::aten::Tensor;
using executorch::extension::WrapUnboxedIntoFunctor;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::Kernel;
using executorch::runtime::KernelRuntimeContext;
using executorch::runtime::resize_tensor;
using executorch::runtime::Span;

namespace {

// compat_shared::plus.out(Tensor x, float number, *, Tensor(a!) out) -> Tensor(a!)
Tensor& plus_out(KernelRuntimeContext& ctx, const Tensor& x, double number, Tensor& out) {
  if (number == 666) throw std::runtime_error("666 is not added");
  ET_KERNEL_CHECK_MSG(ctx, number >= 0, InvalidArgument, out, "the number is %g", number);
  ET_KERNEL_CHECK(ctx, resize_tensor(out, x.sizes()) == Error::Ok, InvalidArgument, out);
  const auto temporary = ctx.allocate_temp(x.nbytes());
  ET_KERNEL_CHECK(ctx, temporary.ok(), MemoryAllocationFailed, out);
  auto* sums = static_cast<float*>(*temporary);
  for (ssize_t i = 0; i < x.numel(); ++i) {
    sums[i] = x.const_data_ptr<float>()[i] + static_cast<float>(number);
  }
  std::memcpy(out.mutable_data_ptr(), sums, x.nbytes());
  return out;
}

// compat_shared::kinds.out(Tensor? a, Tensor[] b, Tensor?[] c, int[] d, float[] e, bool[] f, str g,
// Scalar h, bool i, int? j, *, Tensor(a!) out) -> Tensor(a!)
Tensor& kinds_out(KernelRuntimeContext& ctx, const optional<Tensor>& a, ArrayRef<Tensor> b,
                  ArrayRef<optional<Tensor>> c, ArrayRef<int64_t> d, ArrayRef<double> e,
                  ArrayRef<bool> f, std::string_view g, const Scalar& h, bool i,
                  optional<int64_t> j, Tensor& out) {
  ET_KERNEL_CHECK(ctx, resize_tensor(out, b[0].sizes()) == Error::Ok, InvalidArgument, out);
  double rest = static_cast<double>(g.size()) + h.to<double>() + (i ? 100 : 0);
  rest += static_cast<double>(j.value_or(1000));
  for (size_t k = 0; k < d.size(); ++k) rest += static_cast<double>((k + 1) * d[k]);
  for (size_t k = 0; k < e.size(); ++k) rest += e[k];
  for (size_t k = 0; k < f.size(); ++k) rest += f[k] ? 10 : 0;
  for (ssize_t at = 0; at < out.numel(); ++at) {
    double sum = rest;
    if (a.has_value()) sum += static_cast<double>(a->const_data_ptr<float>()[at]);
    for (const Tensor& tensor : b) sum += static_cast<double>(tensor.const_data_ptr<float>()[at]);
    for (const optional<Tensor>& tensor : c) {
      if (tensor.has_value()) sum += static_cast<double>(tensor->const_data_ptr<float>()[at]);
    }
    out.mutable_data_ptr<float>()[at] = static_cast<float>(sum);
  }
  return out;
}

// compat_shared::halves.out(Tensor x, *, Tensor(a!)[] out) -> ()
void halves_out(KernelRuntimeContext& ctx, const Tensor& x, ArrayRef<Tensor> out) {
  const executorch::aten::SizesType sizes[] = {x.sizes()[0] / 2, x.sizes()[1]};
  const float* from = x.const_data_ptr<float>();
  for (const Tensor& half : out) {
    ET_KERNEL_CHECK(ctx, resize_tensor(half, {sizes, 2}) == Error::Ok, InvalidArgument, );
    std::memcpy(half.mutable_data_ptr(), from, half.nbytes());
    from += half.numel();
  }
}

constexpr char kName[] = "compat_shared::kinds.out";

// The kernels `…_any` take a stack of values, of types that the runtime does not know.
const Kernel kAny[] = {Kernel("compat_shared::plus_any.out",
                              WrapUnboxedIntoFunctor<EXECUTORCH_FN_TYPE(plus_out, kName)>::call),
                       Kernel("compat_shared::kinds_any.out",
                              WrapUnboxedIntoFunctor<EXECUTORCH_FN_TYPE(kinds_out, kName)>::call),
                       Kernel("compat_shared::halves_any.out",
                              WrapUnboxedIntoFunctor<EXECUTORCH_FN_TYPE(halves_out, kName)>::call)};
[[maybe_unused]] const Error registered = executorch::runtime::register_kernels({kAny, 3});

}  // namespace

EXECUTORCH_LIBRARY(compat_shared, "plus.out", plus_out);
EXECUTORCH_LIBRARY(compat_shared, "kinds.out", kinds_out);
EXECUTORCH_LIBRARY(compat_shared, "halves.out", halves_out);
