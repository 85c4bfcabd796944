// The kernels that functions.yaml and custom_ops.yaml name.
#include <executorch/runtime/kernel/kernel_includes.h>

#include <algorithm>
#include <cstdio>

#include "NativeFunctions.h"

namespace own::native {

using executorch::aten::Scalar;
using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::aten::TensorList;
using executorch::runtime::ArrayRef;
using executorch::runtime::Error;
using executorch::runtime::KernelRuntimeContext;

namespace {

bool resize_like(KernelRuntimeContext& ctx, Tensor& out, const Tensor& x) {
  if (executorch::runtime::resize_tensor(out, x.sizes()) == Error::Ok) return true;
  ctx.fail(Error::InvalidArgument);
  return false;
}

double value_of(const Scalar& scalar) {
  return scalar.isFloatingPoint() ? scalar.to<double>() : static_cast<double>(scalar.to<int64_t>());
}

}  // namespace

Tensor& sub_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other,
                const Scalar& alpha, Tensor& out) {
  std::fprintf(stderr, "own sub\n");
  if (!resize_like(ctx, out, self)) return out;
  const bool is_one = other.numel() == 1;
  ET_SWITCH_REAL_TYPES(self.scalar_type(), ctx, "sub.out", CTYPE, [&] {
    for (ssize_t i = 0; i < self.numel(); ++i) {
      const double less = static_cast<double>(other.const_data_ptr<CTYPE>()[is_one ? 0 : i]);
      out.mutable_data_ptr<CTYPE>()[i] = static_cast<CTYPE>(
          static_cast<double>(self.const_data_ptr<CTYPE>()[i]) - value_of(alpha) * less);
    }
  });
  return out;
}

Tensor& mixed_out(KernelRuntimeContext& ctx, const Tensor& x, ArrayRef<int64_t> sizes,
                  ArrayRef<bool> flags, TensorList xs, ArrayRef<std::optional<Tensor>> ys,
                  std::optional<double> eps, std::string_view mode, const Scalar& s, int64_t n,
                  ArrayRef<double> fs, const std::optional<Tensor>& w,
                  std::optional<ArrayRef<int64_t>> more, Tensor& out) {
  if (!resize_like(ctx, out, x)) return out;
  double added = static_cast<double>(n) + eps.value_or(100.0);
  for (const int64_t size : sizes) added += static_cast<double>(size);
  for (const double f : fs) added += f;
  if (flags[0]) added += 10;
  if (flags[1]) added += 20;
  if (more.has_value()) added += static_cast<double>((*more)[0]);
  for (ssize_t i = 0; i < x.numel(); ++i) {
    double sum = static_cast<double>(x.const_data_ptr<float>()[i]) * value_of(s) + added;
    for (const Tensor& one : xs) sum += static_cast<double>(one.const_data_ptr<float>()[i]);
    for (const std::optional<Tensor>& one : ys) {
      if (one.has_value()) sum += static_cast<double>(one->const_data_ptr<float>()[i]);
    }
    if (w.has_value()) sum += 1000;
    out.mutable_data_ptr<float>()[i] = static_cast<float>(mode == "negative" ? -sum : sum);
  }
  return out;
}

std::tuple<Tensor&, Tensor&> min_max_out(KernelRuntimeContext& ctx, const Tensor& x, Tensor& low,
                                         Tensor& high) {
  const float* begin = x.const_data_ptr<float>();
  const auto [least, most] = std::minmax_element(begin, begin + x.numel());
  std::tuple<Tensor&, Tensor&> outs(low, high);
  ET_KERNEL_CHECK(ctx, low.numel() == 1 && high.numel() == 1, InvalidArgument, outs);
  *low.mutable_data_ptr<float>() = *least;
  *high.mutable_data_ptr<float>() = *most;
  return outs;
}

Tensor& twice_out(KernelRuntimeContext& ctx, const Tensor& x, Tensor& out) {
  std::fprintf(stderr, "twice\n");
  if (!resize_like(ctx, out, x)) return out;
  ET_SWITCH_REAL_TYPES(x.scalar_type(), ctx, "own::twice.out", CTYPE, [&] {
    for (ssize_t i = 0; i < x.numel(); ++i) {
      out.mutable_data_ptr<CTYPE>()[i] = static_cast<CTYPE>(x.const_data_ptr<CTYPE>()[i] * 2);
    }
  });
  return out;
}

Tensor& twice_floats_out(KernelRuntimeContext& ctx, const Tensor& x, Tensor& out) {
  std::fprintf(stderr, "twice floats\n");
  if (!resize_like(ctx, out, x)) return out;
  for (ssize_t i = 0; i < x.numel(); ++i) {
    out.mutable_data_ptr<float>()[i] = x.const_data_ptr<float>()[i] * 2;
  }
  return out;
}

}  // namespace own::native
