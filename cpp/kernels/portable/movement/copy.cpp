// Copies of a whole tensor, with changes of type and of dim order.
#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/view.h"

namespace rushlight::kernels {
namespace {

// The dim order of out is fixed when the program is made, so the arguments that request one
// (memory_format, dim_order) are ignored.
Status copy_all(KernelContext& ctx, const Tensor& in, Tensor& out) {
  RL_TRY(ctx.resize_like(out, in));
  return copy_view(ctx, broadcast_view(in, out), out);
}

// Writes `src` into `out`; `src` must broadcast to its shape.
Status copy_broadcast(KernelContext& ctx, const Tensor& src, Tensor& out) {
  const Tensor* tensors[] = {&src, &out};
  Shape shape;
  RL_TRY(broadcast_shape(ctx, tensors, 2, &shape));
  bool same = shape.rank == out.rank;
  for (size_t d = 0; same && d < out.rank; ++d) same = shape.sizes[d] == out.sizes[d];
  if (!same) {
    return ctx.fail(Code::InvalidArgument, "src has shape %s, which does not broadcast to %s",
                    ShapeText(src.shape()).text(), ShapeText(out.shape()).text());
  }
  RL_TRY(ctx.resize(out, shape.span()));
  return copy_view(ctx, broadcast_view(src, out), out);
}

}  // namespace

// clone(self, memory_format, out), _clone_dim_order(self, non_blocking, dim_order, out), …
Status lift_fresh_copy_out(KernelContext& ctx, EValue* const* args) {
  return copy_all(ctx, args[0]->tensor(), args[1]->tensor());
}

Status clone_out(KernelContext& ctx, EValue* const* args) {
  return copy_all(ctx, args[0]->tensor(), args[2]->tensor());
}

Status to_copy_out(KernelContext& ctx, EValue* const* args) {
  return copy_all(ctx, args[0]->tensor(), args[3]->tensor());
}

// copy(self, src, non_blocking, out): self only sets the shape.
Status copy_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[3]->tensor();
  RL_TRY(ctx.resize_like(out, args[0]->tensor()));
  return copy_broadcast(ctx, args[1]->tensor(), out);
}

// copy_(self, src, non_blocking)
Status copy_inplace(KernelContext& ctx, EValue* const* args) {
  return copy_broadcast(ctx, args[1]->tensor(), args[0]->tensor());
}

}  // namespace rushlight::kernels
