// A library of kernels, built as a stranger would: only with the headers of cpp/abi, here with
// exceptions and RTTI.
#include <cmath>
#include <stdexcept>

#include "custom_kernel.h"

using namespace rushlight::custom;

RUSHLIGHT_KERNEL(acme, snake_out)(Context& ctx, const Tensor& x, double a, Tensor& out) {
  if (x.dtype() != DType::Float32 || out.dtype() != DType::Float32) {
    return ctx.fail("x is %s; float32 is allowed", x.dtype_name());
  }
  if (a == 0) throw std::invalid_argument("a must not be 0");
  if (Status s = ctx.resize_like(out, x); !s.ok()) return s;
  if (!out.same_layout(x)) return ctx.fail("x and out must have one dim order");
  const float* from = x.data<float>();
  float* to = out.data<float>();
  ctx.parallel(x.numel(), 1 << 12, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double sine = std::sin(a * from[i]);
      to[i] = static_cast<float>(from[i] + sine * sine / a);
    }
  });
#if defined(WRITES_PAST_ITS_OUTPUT)
  to[x.numel()] = 1;
#endif
  return {};
}

// acme::pick.out(Tensor[] xs, Tensor? bias, int[] indices, float[]? scales, Scalar by, bool negate,
// str mode, int? extra, *, Tensor(a!) sum, Tensor(b!) count): the sum of the chosen tensors.
RUSHLIGHT_KERNEL(acme, pick_out)
(Context& ctx, Span<const Tensor> xs, const Tensor* bias, Span<const int64_t> indices,
 std::optional<Span<const double>> scales, Scalar by, bool negate, std::string_view mode,
 std::optional<int64_t> extra, Tensor& sum, Tensor& count) {
  if (xs.empty()) return ctx.fail("xs is empty; give one tensor or more");
  if (Status s = ctx.resize_like(sum, xs[0]); !s.ok()) return s;
  if (Status s = ctx.resize(count, {}); !s.ok()) return s;
  const int64_t n = sum.numel();
  float* to = sum.data<float>();
  for (int64_t i = 0; i < n; ++i) to[i] = bias != nullptr ? bias->data<float>()[i] : 0;
  for (size_t k = 0; k < indices.size(); ++k) {
    if (indices[k] < 0 || indices[k] >= static_cast<int64_t>(xs.size())) {
      return ctx.fail("index %lld is out of range", static_cast<long long>(indices[k]));
    }
    const Tensor& x = xs[static_cast<size_t>(indices[k])];
    if (!x.same_layout(sum)) return ctx.fail("tensors of xs have different sizes");
    const double scale = (scales ? (*scales)[k] : 1.0) * by.d * (negate ? -1 : 1);
    for (int64_t i = 0; i < n; ++i) to[i] += static_cast<float>(scale * x.data<float>()[i]);
  }
  count.data<int64_t>()[0] =
      static_cast<int64_t>(indices.size()) + extra.value_or(0) + (mode == "twice" ? 100 : 0);
  return {};
}

// acme::push_(Tensor(a!) state, Tensor x) -> (): adds x to the state.
RUSHLIGHT_KERNEL(acme, push)(Context& ctx, Tensor& state, const Tensor& x) {
  if (!state.same_layout(x)) return ctx.fail("x must have the sizes of the state");
  for (int64_t i = 0; i < x.numel(); ++i) state.data<float>()[i] += x.data<float>()[i];
  return {};
}

// acme::halves.out(Tensor x, *, Tensor(a!)[] out) -> (): the halves of the first dimension.
RUSHLIGHT_KERNEL(acme, halves_out)(Context& ctx, const Tensor& x, Span<Tensor> out) {
  if (out.size() != 2 || x.rank() != 1) return ctx.fail("a vector is cut into two");
  const float* from = x.data<float>();
  for (size_t k = 0; k < 2; ++k) {
    const int32_t sizes[] = {k == 0 ? x.size(0) / 2 : x.size(0) - x.size(0) / 2};
    if (Status s = ctx.resize(out[k], sizes); !s.ok()) return s;
    for (int32_t i = 0; i < sizes[0]; ++i) out[k].data<float>()[i] = *from++;
  }
  return {};
}

// acme::which.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!): the number of the kernel that is
// called.
template <int kNumber>
Status which(Context& ctx, const Tensor& x, Tensor& out) {
  if (Status s = ctx.resize_like(out, x); !s.ok()) return s;
  const bool is_double = out.dtype() == DType::Float64;
  for (int64_t i = 0; i < out.numel(); ++i) {
    if (is_double) out.data<double>()[i] = kNumber;
    if (!is_double) out.data<float>()[i] = kNumber;
  }
  return {};
}

RUSHLIGHT_KERNEL_LIBRARY(in_delegates(RUSHLIGHT_OP(acme, snake_out)),
                         in_delegates(RUSHLIGHT_OP(acme, pick_out)), RUSHLIGHT_OP(acme, push),
                         in_delegates(RUSHLIGHT_OP(acme, halves_out)),
                         RUSHLIGHT_OP_AS("acme::which.out", which<0>),
                         RUSHLIGHT_OP_FOR("acme::which.out", "v1/6;0,1|6;0,1", which<1>),
                         RUSHLIGHT_OP_FOR("acme::which.out", "v1/6;1,0|6;1,0", which<2>),
                         RUSHLIGHT_OP_FOR("acme::which.out", "v1/7;0,1|7;0,1", which<3>))
