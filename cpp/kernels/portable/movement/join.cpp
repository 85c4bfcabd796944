// Operators that join tensors: cat, stack, and constant padding.
#include <algorithm>
#include <cstring>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/creation.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {
namespace {

// cat ignores tensors of shape [0], whatever rank the others have.
bool ignored(const Tensor& tensor) { return tensor.rank == 1 && tensor.sizes[0] == 0; }

// Checks that the joined tensors have an element type that out can hold.
Status check_types(KernelContext& ctx, const EValue& tensors, const Tensor& out) {
  for (size_t k = 0; k < tensors.size(); ++k) {
    const Tensor& t = *tensors.tensor_at(k);
    if (t.dtype == out.dtype && element_size(t.dtype) != 0) continue;
    if (is_real(t.dtype) && is_real(out.dtype) && can_cast(t.dtype, out.dtype)) continue;
    return ctx.fail(Code::InvalidArgument, "tensors[%zu] is %s, which does not convert to out's %s",
                    k, dtype_name(t.dtype), dtype_name(out.dtype));
  }
  return {};
}

// The shape of tensor `first`, with the sizes along `dim` added up.
Status cat_shape(KernelContext& ctx, const EValue& tensors, size_t first, size_t dim,
                 Shape* shape) {
  const Tensor& model = *tensors.tensor_at(first);
  *shape = Shape(model.shape());
  int64_t total = 0;
  for (size_t k = first; k < tensors.size(); ++k) {
    const Tensor& t = *tensors.tensor_at(k);
    if (ignored(t)) continue;
    bool fits = t.rank == model.rank;
    for (size_t d = 0; fits && d < t.rank; ++d) fits = d == dim || t.sizes[d] == model.sizes[d];
    if (!fits) {
      return ctx.fail(
          Code::InvalidArgument,
          "tensors[%zu] has shape %s, but tensors[%zu] has %s; sizes may differ only in "
          "dimension %zu",
          k, ShapeText(t.shape()).text(), first, ShapeText(model.shape()).text(), dim);
    }
    total += t.sizes[dim];
  }
  if (total > INT32_MAX) {
    return ctx.fail(Code::InvalidArgument, "the result has size %lld in dimension %zu",
                    static_cast<long long>(total), dim);
  }
  shape->sizes[dim] = static_cast<int32_t>(total);
  return {};
}

// Calls copy(begin, end) for runs of tensors. Many small tensors are divided among threads; the
// copy of a large one uses all threads itself.
template <typename Copy>
void for_tensors(KernelContext& ctx, const EValue& tensors, const Tensor& out, Copy copy) {
  const int64_t count = static_cast<int64_t>(tensors.size());
  const int64_t each = out.numel / count;
  ctx.parallel(count, each >= kGrain ? count : kGrain / (each + 1) + 1, copy);
}

Status needs_tensors(KernelContext& ctx) {
  return ctx.fail(Code::InvalidArgument, "tensors is empty, but must hold at least one tensor");
}

}  // namespace

// cat(tensors, dim, *, out)
Status cat_out(KernelContext& ctx, EValue* const* args) {
  const EValue& tensors = *args[0];
  Tensor& out = args[2]->tensor();
  if (tensors.size() == 0) return needs_tensors(ctx);
  RL_TRY(check_types(ctx, tensors, out));
  size_t first = 0;
  while (first < tensors.size() && ignored(*tensors.tensor_at(first))) ++first;
  if (first == tensors.size()) return ctx.resize_like(out, *tensors.tensor_at(0));
  const Tensor& model = *tensors.tensor_at(first);
  if (model.rank == 0) {
    return ctx.fail(Code::InvalidArgument, "tensors[%zu] has no dimensions, so it cannot be joined",
                    first);
  }
  size_t dim = 0;
  RL_TRY(wrap_dim(ctx, args[1]->to_int(), model.rank, &dim));
  Shape shape;
  RL_TRY(cat_shape(ctx, tensors, first, dim, &shape));
  RL_TRY(ctx.resize(out, shape.span()));
  for_tensors(ctx, tensors, out, [&](int64_t begin, int64_t end) {
    int64_t at = 0;
    for (size_t k = first; k < static_cast<size_t>(end); ++k) {
      const Tensor& t = *tensors.tensor_at(k);
      if (ignored(t)) continue;
      if (k >= static_cast<size_t>(begin)) {
        CopyBlock block;
        for (size_t d = 0; d < t.rank; ++d) block.push(t.sizes[d], t.strides[d], out.strides[d]);
        uint8_t* to = element_at(out, at * out.strides[dim]);
        converting_copy(ctx, t.data, t.dtype, to, out.dtype, block);
      }
      at += t.sizes[dim];
    }
  });
  return {};
}

// stack(tensors, dim, *, out)
Status stack_out(KernelContext& ctx, EValue* const* args) {
  const EValue& tensors = *args[0];
  Tensor& out = args[2]->tensor();
  if (tensors.size() == 0) return needs_tensors(ctx);
  RL_TRY(check_types(ctx, tensors, out));
  const Tensor& model = *tensors.tensor_at(0);
  size_t dim = 0;
  RL_TRY(wrap_dim(ctx, args[1]->to_int(), model.rank + size_t{1}, &dim));
  Shape shape;
  for (size_t d = 0; d <= model.rank; ++d) {
    const int64_t size =
        d == dim ? static_cast<int64_t>(tensors.size()) : model.sizes[d < dim ? d : d - 1];
    if (!shape.push(size)) {
      return ctx.fail(Code::InvalidArgument, "the result has more than %zu dimensions", kMaxRank);
    }
  }
  for (size_t k = 1; k < tensors.size(); ++k) {
    const Tensor& t = *tensors.tensor_at(k);
    bool same = t.rank == model.rank;
    for (size_t d = 0; same && d < t.rank; ++d) same = t.sizes[d] == model.sizes[d];
    if (same) continue;
    return ctx.fail(Code::InvalidArgument, "tensors[%zu] has shape %s, but tensors[0] has %s", k,
                    ShapeText(t.shape()).text(), ShapeText(model.shape()).text());
  }
  RL_TRY(ctx.resize(out, shape.span()));
  for_tensors(ctx, tensors, out, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const Tensor& t = *tensors.tensor_at(static_cast<size_t>(k));
      CopyBlock block;
      for (size_t d = 0; d < t.rank; ++d) {
        block.push(t.sizes[d], t.strides[d], out.strides[d < dim ? d : d + 1]);
      }
      uint8_t* to = element_at(out, k * out.strides[dim]);
      converting_copy(ctx, t.data, t.dtype, to, out.dtype, block);
    }
  });
  return {};
}

// constant_pad_nd(self, pad, value, *, out): pad has (before, after) for each dimension, starting
// with the last. Negative amounts remove elements.
Status constant_pad_nd_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const EValue& pad = *args[1];
  Tensor& out = args[3]->tensor();
  if (pad.size() % 2 != 0 || pad.size() / 2 > self.rank) {
    return ctx.fail(Code::InvalidArgument,
                    "pad has %zu entries, but must have two for each of at most %u dimensions",
                    pad.size(), static_cast<unsigned>(self.rank));
  }
  Shape shape(self.shape());
  int64_t before[kMaxRank] = {};
  int64_t kept[kMaxRank];
  std::copy(self.sizes, self.sizes + self.rank, kept);
  for (size_t k = 0; k < pad.size() / 2; ++k) {
    const size_t d = self.rank - k - 1;
    const int64_t low = pad.int_at(2 * k);
    const int64_t high = pad.int_at(2 * k + 1);
    const bool sane =
        low >= -INT32_MAX && low <= INT32_MAX && high >= -INT32_MAX && high <= INT32_MAX;
    const int64_t size = sane ? low + high + self.sizes[d] : -1;
    if (size < 0 || size > INT32_MAX) {
      return ctx.fail(Code::InvalidArgument,
                      "padding dimension %zu, of size %d, by %lld and %lld leaves no valid size", d,
                      static_cast<int>(self.sizes[d]), static_cast<long long>(low),
                      static_cast<long long>(high));
    }
    shape.sizes[d] = static_cast<int32_t>(size);
    before[d] = low;
    kept[d] = self.sizes[d] + std::min<int64_t>(low, 0) + std::min<int64_t>(high, 0);
  }
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(ctx.resize(out, shape.span()));
  if (out.numel == 0) return {};
  if (out.numel > self.numel || pad.size() > 0) RL_TRY(fill(ctx, out, *args[2]));
  CopyBlock block;
  int64_t from = 0;
  int64_t to = 0;
  for (size_t d = 0; d < self.rank; ++d) {
    if (kept[d] <= 0) return {};
    block.push(kept[d], self.strides[d], out.strides[d]);
    from += std::max<int64_t>(-before[d], 0) * self.strides[d];
    to += std::max<int64_t>(before[d], 0) * out.strides[d];
  }
  strided_copy(ctx, element_at(self, from), element_at(out, to), block, element_size(out.dtype));
  return {};
}

}  // namespace rushlight::kernels
