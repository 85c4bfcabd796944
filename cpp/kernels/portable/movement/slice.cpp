// Operators that copy or replace a part of a tensor along one dimension.
#include <algorithm>
#include <cstring>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"

namespace rushlight::kernels {
namespace {

// `length` elements of a dimension: start, start + step, …
struct Slice {
  size_t dim = 0;
  int64_t start = 0;
  int64_t step = 1;
  int64_t length = 0;
};

Status needs_dimension(KernelContext& ctx) {
  return ctx.fail(Code::InvalidArgument, "self has no dimensions, but must have at least one");
}

Status wrap_own_dim(KernelContext& ctx, const Tensor& self, const EValue& value, size_t* dim) {
  if (self.rank == 0) return needs_dimension(ctx);
  return wrap_dim(ctx, value.to_int(), self.rank, dim);
}

// Applies the rules of slice: negative bounds count from the end, and bounds outside are clamped.
Status slice_of(KernelContext& ctx, const Tensor& self, const EValue& dim, const EValue& start,
                const EValue& end, const EValue& step, Slice* slice) {
  RL_TRY(wrap_own_dim(ctx, self, dim, &slice->dim));
  slice->step = step.to_int();
  if (slice->step <= 0) {
    return ctx.fail(Code::InvalidArgument, "step is %lld, but must be at least 1",
                    static_cast<long long>(slice->step));
  }
  const int64_t size = self.sizes[slice->dim];
  const auto bound = [size](int64_t value) {
    if (value < 0) value = value < -size ? 0 : value + size;
    return std::min(value, size);
  };
  slice->start = bound(int_or(start, 0));
  const int64_t stop = std::max(bound(int_or(end, INT64_MAX)), slice->start);
  const int64_t span = stop - slice->start;
  slice->length = span / slice->step + (span % slice->step != 0);
  return {};
}

Shape sliced_shape(const Tensor& self, const Slice& slice) {
  Shape shape(self.shape());
  shape.sizes[slice.dim] = static_cast<int32_t>(slice.length);
  return shape;
}

// The stride of a slice. A large step over a single element must not overflow.
int64_t sliced_stride(const Tensor& self, const Slice& slice) {
  return slice.length > 1 ? self.strides[slice.dim] * slice.step : 0;
}

int64_t slice_offset(const Tensor& self, const Slice& slice) {
  return slice.length > 0 ? slice.start * self.strides[slice.dim] : 0;
}

Status copy_slice(KernelContext& ctx, const Tensor& self, const Slice& slice, Tensor& out) {
  int64_t strides[kMaxRank];
  std::copy(self.strides, self.strides + self.rank, strides);
  strides[slice.dim] = sliced_stride(self, slice);
  return copy_as(ctx, self, slice_offset(self, slice), strides, sliced_shape(self, slice), out);
}

// Copies the part at one index, without its dimension.
Status copy_selected(KernelContext& ctx, const Tensor& self, size_t dim, int64_t index,
                     Tensor& out) {
  Shape shape;
  int64_t strides[kMaxRank];
  for (size_t d = 0; d < self.rank; ++d) {
    if (d == dim) continue;
    strides[shape.rank] = self.strides[d];
    shape.push(self.sizes[d]);
  }
  const int64_t offset = self.numel > 0 ? index * self.strides[dim] : 0;
  return copy_as(ctx, self, offset, strides, shape, out);
}

// out = self, with a block replaced by src. The block starts at `offset`, has the sizes of src, and
// these strides in out.
Status replace(KernelContext& ctx, const Tensor& self, const Tensor& src, const Shape& wanted,
               Tensor& out, size_t dim, bool keeps_dim, const Slice& slice) {
  bool same = src.rank == wanted.rank;
  for (size_t d = 0; same && d < wanted.rank; ++d) same = src.sizes[d] == wanted.sizes[d];
  if (!same) {
    return ctx.fail(Code::InvalidArgument, "src has shape %s, but the part it replaces has %s",
                    ShapeText(src.shape()).text(), ShapeText(wanted.span()).text());
  }
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(check_same_type(ctx, "src", src, out));
  RL_TRY(ctx.resize_like(out, self));
  copy_all(self, out);
  CopyBlock block;
  for (size_t d = 0; d < out.rank; ++d) {
    if (d != dim) {
      const size_t from = d < dim || keeps_dim ? d : d - 1;
      block.push(out.sizes[d], src.strides[from], out.strides[d]);
    } else if (keeps_dim) {
      block.push(slice.length, src.strides[d], sliced_stride(out, slice));
    }
  }
  if (src.numel == 0) return {};
  strided_copy(src.data, element_at(out, slice_offset(out, slice)), block, element_size(out.dtype));
  return {};
}

Status wrap_index(KernelContext& ctx, const Tensor& self, size_t dim, int64_t index,
                  int64_t* wrapped) {
  const int64_t size = self.sizes[dim];
  if (index < -size || index >= size) {
    return ctx.fail(Code::InvalidArgument, "index is %lld, but dimension %zu has size %lld",
                    static_cast<long long>(index), dim, static_cast<long long>(size));
  }
  *wrapped = index < 0 ? index + size : index;
  return {};
}

Status check_count(KernelContext& ctx, const EValue& out, int64_t parts) {
  if (static_cast<int64_t>(out.size()) == parts) return {};
  return ctx.fail(Code::InvalidArgument, "the result has %lld parts, but out has %zu tensors",
                  static_cast<long long>(parts), out.size());
}

}  // namespace

// slice_copy(self, dim, start, end, step, *, out)
Status slice_copy_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  Slice slice;
  RL_TRY(slice_of(ctx, self, *args[1], *args[2], *args[3], *args[4], &slice));
  return copy_slice(ctx, self, slice, args[5]->tensor());
}

// slice_scatter(self, src, dim, start, end, step, *, out)
Status slice_scatter_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  Slice slice;
  RL_TRY(slice_of(ctx, self, *args[2], *args[3], *args[4], *args[5], &slice));
  return replace(ctx, self, args[1]->tensor(), sliced_shape(self, slice), args[6]->tensor(),
                 slice.dim, true, slice);
}

Status select_copy_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  size_t dim = 0;
  int64_t index = 0;
  RL_TRY(wrap_own_dim(ctx, self, *args[1], &dim));
  RL_TRY(wrap_index(ctx, self, dim, args[2]->to_int(), &index));
  return copy_selected(ctx, self, dim, index, args[3]->tensor());
}

// select_scatter(self, src, dim, index, *, out)
Status select_scatter_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  Slice slice;
  RL_TRY(wrap_own_dim(ctx, self, *args[2], &slice.dim));
  RL_TRY(wrap_index(ctx, self, slice.dim, args[3]->to_int(), &slice.start));
  slice.length = 1;
  Shape wanted;
  for (size_t d = 0; d < self.rank; ++d) {
    if (d != slice.dim) wanted.push(self.sizes[d]);
  }
  return replace(ctx, self, args[1]->tensor(), wanted, args[4]->tensor(), slice.dim, false, slice);
}

// narrow_copy(self, dim, start, length, *, out)
Status narrow_copy_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  Slice slice;
  RL_TRY(wrap_own_dim(ctx, self, *args[1], &slice.dim));
  const int64_t size = self.sizes[slice.dim];
  const int64_t start = args[2]->to_int();
  slice.start = start < 0 && start >= -size ? start + size : start;
  slice.length = args[3]->to_int();
  if (slice.start < 0 || slice.start > size || slice.length < 0 ||
      slice.length > size - slice.start) {
    return ctx.fail(Code::InvalidArgument,
                    "start is %lld and length is %lld, but dimension %zu has size %lld",
                    static_cast<long long>(start), static_cast<long long>(slice.length), slice.dim,
                    static_cast<long long>(size));
  }
  return copy_slice(ctx, self, slice, args[4]->tensor());
}

// split_with_sizes_copy(self, split_sizes, dim, *, out[])
Status split_with_sizes_copy_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const EValue& sizes = *args[1];
  Slice slice;
  RL_TRY(wrap_own_dim(ctx, self, *args[2], &slice.dim));
  RL_TRY(check_count(ctx, *args[3], static_cast<int64_t>(sizes.size())));
  const int64_t size = self.sizes[slice.dim];
  int64_t left = size;
  for (size_t k = 0; k < sizes.size(); ++k) {
    const int64_t part = sizes.int_at(k);
    if (part < 0 || part > left || (k + 1 == sizes.size() && part != left)) {
      return ctx.fail(Code::InvalidArgument,
                      "split_sizes do not add up to %lld, the size of dimension %zu, at entry %zu, "
                      "which is %lld",
                      static_cast<long long>(size), slice.dim, k, static_cast<long long>(part));
    }
    left -= part;
  }
  for (size_t k = 0; k < sizes.size(); ++k) {
    slice.length = sizes.int_at(k);
    RL_TRY(copy_slice(ctx, self, slice, *args[3]->tensor_at(k)));
    slice.start += slice.length;
  }
  return {};
}

// split_copy(self, split_size, dim, *, out[])
Status split_copy_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const int64_t part = args[1]->to_int();
  Slice slice;
  RL_TRY(wrap_own_dim(ctx, self, *args[2], &slice.dim));
  const int64_t size = self.sizes[slice.dim];
  if (part < 0 || (part == 0 && size != 0)) {
    return ctx.fail(Code::InvalidArgument,
                    "split_size is %lld, but must be at least 1 (dimension %zu has size %lld)",
                    static_cast<long long>(part), slice.dim, static_cast<long long>(size));
  }
  const int64_t parts = part == 0 ? 1 : std::max<int64_t>(size / part + (size % part != 0), 1);
  RL_TRY(check_count(ctx, *args[3], parts));
  for (int64_t k = 0; k < parts; ++k) {
    slice.length = std::min(part, size - slice.start);
    RL_TRY(copy_slice(ctx, self, slice, *args[3]->tensor_at(static_cast<size_t>(k))));
    slice.start += slice.length;
  }
  return {};
}

// unbind_copy(self, dim, *, out[])
Status unbind_copy_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  size_t dim = 0;
  RL_TRY(wrap_own_dim(ctx, self, *args[1], &dim));
  RL_TRY(check_count(ctx, *args[2], self.sizes[dim]));
  for (int64_t k = 0; k < self.sizes[dim]; ++k) {
    RL_TRY(copy_selected(ctx, self, dim, k, *args[2]->tensor_at(static_cast<size_t>(k))));
  }
  return {};
}

}  // namespace rushlight::kernels
