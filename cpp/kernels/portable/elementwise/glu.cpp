// The gated linear unit: one half of a dimension times the sigmoid of the other.
#include "rushlight/kernels/portable/loops/elementwise/glu.h"

#include <algorithm>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/rows.h"
#include "rushlight/kernels/portable/walk.h"

namespace rushlight::kernels {
namespace {

void run_glu(KernelContext& ctx, const Tensor& self, size_t dim, const Tensor& out) {
  const DType compute = compute_dtype(self.dtype);
  const size_t type = static_cast<size_t>(compute_index(compute));
  Walk<2> walk;
  for (size_t k = self.rank; k-- > 0;) {
    const size_t d = self.dim_order[k];
    walk.add(out.sizes[d], {self.strides[d], out.strides[d]});
  }
  int64_t strides[2];
  const size_t run = static_cast<size_t>(walk.take_run(strides));
  const int64_t gate_offset = static_cast<int64_t>(out.sizes[dim]) * self.strides[dim];
  ctx.parallel(walk.count(), kGrain / static_cast<int64_t>(run) + 1,
               [&](int64_t begin, int64_t end) {
                 RowReader x(self, compute);
                 RowReader gate(self, compute);
                 RowWriter y(out, compute);
                 const size_t most = std::min(x.limit(strides[0]), y.limit(strides[1]));
                 Walk<2> here = walk;
                 here.seek(begin);
                 for (int64_t position = begin; position < end; ++position, here.next()) {
                   for (size_t done = 0, n = 0; done < run; done += n) {
                     n = std::min(most, run - done);
                     const int64_t from = here.offset(0) + static_cast<int64_t>(done) * strides[0];
                     const int64_t to = here.offset(1) + static_cast<int64_t>(done) * strides[1];
                     glu_loops().glu[type](x.read(from, strides[0], n),
                                           gate.read(from + gate_offset, strides[0], n), n,
                                           y.target(to, strides[1]));
                     y.store(to, strides[1], n);
                   }
                 }
               });
}

}  // namespace

// glu(self, dim, *, out)
Status glu_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  Tensor& out = args[2]->tensor();
  size_t dim = 0;
  if (!is_floating(self.dtype)) {
    return ctx.fail(Code::NotSupported, "self is %s, but must be floating", dtype_name(self.dtype));
  }
  if (self.rank == 0) {
    return ctx.fail(Code::InvalidArgument, "self has no dimensions, but must have at least one");
  }
  RL_TRY(wrap_dim(ctx, args[1]->to_int(), self.rank, &dim));
  if (self.sizes[dim] % 2 != 0) {
    return ctx.fail(Code::InvalidArgument, "self has size %d in dimension %zu, but must be even",
                    static_cast<int>(self.sizes[dim]), dim);
  }
  RL_TRY(check_same_type(ctx, "self", self, out));
  Shape shape(self.shape());
  shape.sizes[dim] /= 2;
  RL_TRY(ctx.resize(out, shape.span()));
  if (out.numel > 0) run_glu(ctx, self, dim, out);
  return {};
}

}  // namespace rushlight::kernels
