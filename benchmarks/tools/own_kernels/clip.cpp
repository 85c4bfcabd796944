// A kernel of the user's own that costs little, with and without leave to be called in delegates.
#include <algorithm>

#include "custom_kernel.h"

using namespace rushlight::custom;

// bench::clip.out(Tensor x, float most, *, Tensor(a!) out) -> Tensor(a!)
RUSHLIGHT_KERNEL(bench, clip_out)(Context& ctx, const Tensor& x, double most, Tensor& out) {
  if (x.dtype() != DType::Float32) return ctx.fail("x is %s; float32 is allowed", x.dtype_name());
  if (Status s = ctx.resize_like(out, x); !s.ok()) return s;
  if (!out.same_layout(x)) return ctx.fail("x and out must have one dim order");
  const float* from = x.data<float>();
  float* to = out.data<float>();
  const float limit = static_cast<float>(most);
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = std::min(std::max(from[i], -limit), limit);
  return {};
}

#if defined(IN_DELEGATES)
RUSHLIGHT_KERNEL_LIBRARY(in_delegates(RUSHLIGHT_OP(bench, clip_out)))
#else
RUSHLIGHT_KERNEL_LIBRARY(RUSHLIGHT_OP(bench, clip_out))
#endif
