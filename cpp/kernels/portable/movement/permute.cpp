// Operators that present a tensor's elements in another order or shape: permutations, views,
// broadcasts, flips, windows. Each one is a set of strides over `self` for the common copy engine.
#include <algorithm>
#include <cstring>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"

namespace rushlight::kernels {
namespace {

void swap_dims(const Tensor& self, size_t a, size_t b, Shape* shape, int64_t* strides) {
  *shape = Shape(self.shape());
  std::copy(self.strides, self.strides + self.rank, strides);
  if (self.rank == 0) return;
  std::swap(shape->sizes[a], shape->sizes[b]);
  std::swap(strides[a], strides[b]);
}

Status check_upscale(KernelContext& ctx, const Tensor& self, int64_t factor, const char* name) {
  if (self.rank < 3) {
    return ctx.fail(Code::InvalidArgument, "self has shape %s, but must have at least 3 dimensions",
                    ShapeText(self.shape()).text());
  }
  if (factor >= 1 && factor <= INT16_MAX) return {};
  return ctx.fail(Code::InvalidArgument, "%s is %lld, but must be from 1 to %d", name,
                  static_cast<long long>(factor), INT16_MAX);
}

Status too_many_dims(KernelContext& ctx) {
  return ctx.fail(Code::InvalidArgument,
                  "the result has more than %zu dimensions, or too great a one", kMaxRank);
}

}  // namespace

Status permute_copy_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const EValue& dims = *args[1];
  if (dims.size() != self.rank) {
    return ctx.fail(Code::InvalidArgument, "dims has %zu entries, but self has %u dimensions",
                    dims.size(), static_cast<unsigned>(self.rank));
  }
  bool named[kMaxRank] = {};
  RL_TRY(wrap_dims(ctx, dims, self.rank, false, named));
  Shape shape;
  int64_t strides[kMaxRank];
  for (size_t d = 0; d < self.rank; ++d) {
    size_t from = 0;
    RL_TRY(wrap_dim(ctx, dims.int_at(d), self.rank, &from));
    shape.push(self.sizes[from]);
    strides[d] = self.strides[from];
  }
  return copy_as(ctx, self, 0, strides, shape, args[2]->tensor());
}

Status transpose_copy_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  size_t a = 0;
  size_t b = 0;
  RL_TRY(wrap_dim(ctx, args[1]->to_int(), self.rank, &a));
  RL_TRY(wrap_dim(ctx, args[2]->to_int(), self.rank, &b));
  Shape shape;
  int64_t strides[kMaxRank];
  swap_dims(self, a, b, &shape, strides);
  return copy_as(ctx, self, 0, strides, shape, args[3]->tensor());
}

Status t_copy_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  if (self.rank > 2) {
    return ctx.fail(Code::InvalidArgument, "self has shape %s, but t takes at most 2 dimensions",
                    ShapeText(self.shape()).text());
  }
  Shape shape;
  int64_t strides[kMaxRank];
  swap_dims(self, 0, self.rank == 2 ? 1 : 0, &shape, strides);
  return copy_as(ctx, self, 0, strides, shape, args[1]->tensor());
}

Status unsqueeze_copy_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  size_t dim = 0;
  RL_TRY(wrap_dim(ctx, args[1]->to_int(), self.rank + size_t{1}, &dim));
  Shape shape;
  int64_t strides[kMaxRank];
  for (size_t d = 0; d <= self.rank; ++d) {
    const size_t from = d < dim ? d : d - 1;
    if (d < kMaxRank) strides[d] = d == dim ? 0 : self.strides[from];
    if (!shape.push(d == dim ? 1 : self.sizes[from])) return too_many_dims(ctx);
  }
  return copy_as(ctx, self, 0, strides, shape, args[2]->tensor());
}

namespace {

Status squeeze(KernelContext& ctx, const Tensor& self, const bool* dropped, Tensor& out) {
  Shape shape;
  int64_t strides[kMaxRank];
  for (size_t d = 0; d < self.rank; ++d) {
    if (dropped[d] && self.sizes[d] == 1) continue;
    strides[shape.rank] = self.strides[d];
    shape.push(self.sizes[d]);
  }
  return copy_as(ctx, self, 0, strides, shape, out);
}

}  // namespace

Status squeeze_copy_dim_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  size_t dim = 0;
  RL_TRY(wrap_dim(ctx, args[1]->to_int(), self.rank, &dim));
  bool dropped[kMaxRank] = {};
  dropped[dim] = true;
  return squeeze(ctx, self, dropped, args[2]->tensor());
}

Status squeeze_copy_dims_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  bool dropped[kMaxRank] = {};
  RL_TRY(wrap_dims(ctx, *args[1], self.rank, false, dropped));
  return squeeze(ctx, self, dropped, args[2]->tensor());
}

// expand_copy(self, size, *, implicit, out)
Status expand_copy_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const EValue& size = *args[1];
  if (size.size() < self.rank || size.size() > kMaxRank) {
    return ctx.fail(Code::InvalidArgument, "size has %zu entries, but self has %u dimensions",
                    size.size(), static_cast<unsigned>(self.rank));
  }
  const size_t lead = size.size() - self.rank;
  Shape shape;
  int64_t strides[kMaxRank];
  for (size_t d = 0; d < size.size(); ++d) {
    const int64_t wanted = size.int_at(d);
    const int64_t own = d < lead ? 1 : self.sizes[d - lead];
    const int64_t result = wanted == -1 && d >= lead ? own : wanted;
    if ((own != 1 && result != own) || !shape.push(result)) {
      return ctx.fail(Code::InvalidArgument,
                      "self has shape %s, whose dimension of size %lld cannot expand to %lld",
                      ShapeText(self.shape()).text(), static_cast<long long>(own),
                      static_cast<long long>(wanted));
    }
    strides[d] = own == 1 ? 0 : self.strides[d - lead];
  }
  return copy_as(ctx, self, 0, strides, shape, args[3]->tensor());
}

Status repeat_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const EValue& repeats = *args[1];
  Tensor& out = args[2]->tensor();
  if (repeats.size() < self.rank || repeats.size() > kMaxRank) {
    return ctx.fail(Code::InvalidArgument, "repeats has %zu entries, but self has %u dimensions",
                    repeats.size(), static_cast<unsigned>(self.rank));
  }
  const size_t lead = repeats.size() - self.rank;
  Shape shape;
  for (size_t d = 0; d < repeats.size(); ++d) {
    const int64_t own = d < lead ? 1 : self.sizes[d - lead];
    const int64_t times = repeats.int_at(d);
    if (times < 0 || times > INT32_MAX || !shape.push(own * times)) {
      return ctx.fail(Code::InvalidArgument, "repeats[%zu] is %lld, on a dimension of size %lld", d,
                      static_cast<long long>(times), static_cast<long long>(own));
    }
  }
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(ctx.resize(out, shape.span()));
  if (out.numel == 0) return {};
  CopyBlock block;
  for (size_t d = 0; d < repeats.size(); ++d) {
    const int64_t own = d < lead ? 1 : self.sizes[d - lead];
    block.push(repeats.int_at(d), 0, own * out.strides[d]);
    block.push(own, d < lead ? 0 : self.strides[d - lead], out.strides[d]);
  }
  strided_copy(ctx, self.data, out.data, block, element_size(self.dtype));
  return {};
}

Status flip_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  bool flipped[kMaxRank] = {};
  RL_TRY(wrap_dims(ctx, *args[1], self.rank, false, flipped));
  int64_t strides[kMaxRank];
  int64_t offset = 0;
  for (size_t d = 0; d < self.rank; ++d) {
    strides[d] = flipped[d] ? -self.strides[d] : self.strides[d];
    if (flipped[d] && self.numel > 0) offset += int64_t{self.strides[d]} * (self.sizes[d] - 1);
  }
  return copy_as(ctx, self, offset, strides, Shape(self.shape()), args[2]->tensor());
}

namespace {

// A diagonal of a tensor: its offset, its shape, and its strides in the tensor.
struct Diagonal {
  int64_t start;
  Shape shape;
  int64_t strides[kMaxRank];
};

Status find_diagonal(KernelContext& ctx, const Tensor& self, EValue* const* args,
                     Diagonal* diagonal) {
  const int64_t offset = args[0]->to_int();
  size_t dim1 = 0;
  size_t dim2 = 0;
  RL_TRY(wrap_dim(ctx, args[1]->to_int(), self.rank, &dim1));
  RL_TRY(wrap_dim(ctx, args[2]->to_int(), self.rank, &dim2));
  if (dim1 == dim2) {
    return ctx.fail(Code::InvalidArgument, "dim1 and dim2 are both %zu, but must differ", dim1);
  }
  const int64_t down = offset < 0 ? -std::max<int64_t>(offset, -INT32_MAX) : 0;
  const int64_t across = std::min<int64_t>(std::max<int64_t>(offset, 0), INT32_MAX);
  const int64_t length =
      std::max<int64_t>(std::min(self.sizes[dim1] - down, self.sizes[dim2] - across), 0);
  Shape& shape = diagonal->shape;
  for (size_t d = 0; d < self.rank; ++d) {
    if (d == dim1 || d == dim2) continue;
    diagonal->strides[shape.rank] = self.strides[d];
    shape.push(self.sizes[d]);
  }
  diagonal->strides[shape.rank] = int64_t{self.strides[dim1]} + self.strides[dim2];
  shape.push(length);
  diagonal->start = length == 0 ? 0 : down * self.strides[dim1] + across * self.strides[dim2];
  return {};
}

}  // namespace

// diagonal_copy(self, offset, dim1, dim2, *, out)
Status diagonal_copy_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  Diagonal diagonal;
  RL_TRY(find_diagonal(ctx, self, args + 1, &diagonal));
  return copy_as(ctx, self, diagonal.start, diagonal.strides, diagonal.shape, args[4]->tensor());
}

// diagonal_scatter(self, src, offset, dim1, dim2, *, out)
Status diagonal_scatter_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const Tensor& src = args[1]->tensor();
  Tensor& out = args[5]->tensor();
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(check_same_type(ctx, "src", src, out));
  Diagonal diagonal;
  RL_TRY(find_diagonal(ctx, self, args + 2, &diagonal));
  const Span<const int32_t> wanted = diagonal.shape.span();
  const Span<const int32_t> actual = src.shape();
  if (!std::equal(wanted.begin(), wanted.end(), actual.begin(), actual.end())) {
    return ctx.fail(Code::InvalidArgument, "src has shape %s, but the diagonal has %s",
                    ShapeText(actual).text(), ShapeText(wanted).text());
  }
  RL_TRY(ctx.resize_like(out, self));
  copy_all(self, out);
  // In out, which may have another dim order than self.
  Diagonal place;
  RL_TRY(find_diagonal(ctx, out, args + 2, &place));
  CopyBlock block;
  for (size_t d = 0; d < src.rank; ++d) block.push(src.sizes[d], src.strides[d], place.strides[d]);
  strided_copy(src.data, element_at(out, place.start), block, element_size(out.dtype));
  return {};
}

// unfold_copy(self, dimension, size, step, *, out)
Status unfold_copy_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const int64_t size = args[2]->to_int();
  const int64_t step = args[3]->to_int();
  size_t dim = 0;
  RL_TRY(wrap_dim(ctx, args[1]->to_int(), self.rank, &dim));
  const int64_t length = self.rank == 0 ? 1 : self.sizes[dim];
  if (size < 0 || size > length || step <= 0) {
    return ctx.fail(Code::InvalidArgument,
                    "size is %lld and step is %lld, but the dimension's size is %lld: size must be "
                    "from 0 to that, step at least 1",
                    static_cast<long long>(size), static_cast<long long>(step),
                    static_cast<long long>(length));
  }
  Shape shape(self.shape());
  int64_t strides[kMaxRank + 1];
  std::copy(self.strides, self.strides + self.rank, strides);
  const int64_t own = self.rank == 0 ? 1 : self.strides[dim];
  if (self.rank > 0) {
    shape.sizes[dim] = static_cast<int32_t>((length - size) / step + 1);
    // With one window the stride does not matter, but a large step could overflow it.
    strides[dim] = shape.sizes[dim] > 1 ? own * step : 0;
  }
  strides[self.rank] = own;
  if (!shape.push(size)) return too_many_dims(ctx);
  return copy_as(ctx, self, 0, strides, shape, args[4]->tensor());
}

// as_strided_copy(self, size, stride, storage_offset, *, out); the storage is self's own memory.
Status as_strided_copy_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const EValue& stride = *args[2];
  Shape shape;
  RL_TRY(shape_of_list(ctx, *args[1], &shape));
  if (stride.size() != shape.rank) {
    return ctx.fail(Code::InvalidArgument, "size has %zu entries, but stride has %zu", shape.rank,
                    stride.size());
  }
  const int64_t offset = int_or(*args[3], 0);
  int64_t strides[kMaxRank];
  bool empty = false;
  bool inside = offset >= 0 && offset < self.numel;
  int64_t last = inside ? offset : 0;
  for (size_t d = 0; d < shape.rank; ++d) {
    strides[d] = stride.int_at(d);
    empty = empty || shape.sizes[d] == 0;
    const int64_t most = shape.sizes[d] - 1;
    if (strides[d] < 0 || (most > 0 && strides[d] > (INT64_MAX - last) / most)) {
      return ctx.fail(Code::InvalidArgument, "stride[%zu] is %lld, which is out of range", d,
                      static_cast<long long>(strides[d]));
    }
    if (most > 0 && inside) last += most * strides[d];
    if (most <= 0) strides[d] = 0;
  }
  inside = inside && last < self.numel;
  if (!empty && !inside) {
    return ctx.fail(Code::InvalidArgument,
                    "size, stride and storage_offset %lld reach outside of self, which has %lld "
                    "elements",
                    static_cast<long long>(offset), static_cast<long long>(self.numel));
  }
  return copy_as(ctx, self, empty ? 0 : offset, strides, shape, args[4]->tensor());
}

// [..., C r r, H, W] to [..., C, H r, W r]
Status pixel_shuffle_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const int64_t r = args[1]->to_int();
  Tensor& out = args[2]->tensor();
  RL_TRY(check_upscale(ctx, self, r, "upscale_factor"));
  const size_t c = self.rank - size_t{3};
  if (self.sizes[c] % (r * r) != 0) {
    return ctx.fail(Code::InvalidArgument,
                    "self has %d channels, which upscale_factor %lld squared does not divide",
                    static_cast<int>(self.sizes[c]), static_cast<long long>(r));
  }
  Shape shape(self.shape());
  shape.rank = c;
  if (!shape.push(self.sizes[c] / (r * r)) || !shape.push(self.sizes[c + 1] * r) ||
      !shape.push(self.sizes[c + 2] * r)) {
    return too_many_dims(ctx);
  }
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(ctx.resize(out, shape.span()));
  const int32_t* from = self.strides;
  const int32_t* to = out.strides;
  CopyBlock block;
  for (size_t d = 0; d < c; ++d) block.push(self.sizes[d], from[d], to[d]);
  block.push(shape.sizes[c], from[c] * r * r, to[c]);
  block.push(r, from[c] * r, to[c + 1]);
  block.push(r, from[c], to[c + 2]);
  block.push(self.sizes[c + 1], from[c + 1], to[c + 1] * r);
  block.push(self.sizes[c + 2], from[c + 2], to[c + 2] * r);
  strided_copy(ctx, self.data, out.data, block, element_size(self.dtype));
  return {};
}

// [..., C, H r, W r] to [..., C r r, H, W]
Status pixel_unshuffle_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const int64_t r = args[1]->to_int();
  Tensor& out = args[2]->tensor();
  RL_TRY(check_upscale(ctx, self, r, "downscale_factor"));
  const size_t c = self.rank - size_t{3};
  if (self.sizes[c + 1] % r != 0 || self.sizes[c + 2] % r != 0) {
    return ctx.fail(Code::InvalidArgument,
                    "self has shape %s, whose last two sizes downscale_factor %lld does not divide",
                    ShapeText(self.shape()).text(), static_cast<long long>(r));
  }
  Shape shape(self.shape());
  shape.rank = c;
  if (!shape.push(self.sizes[c] * r * r) || !shape.push(self.sizes[c + 1] / r) ||
      !shape.push(self.sizes[c + 2] / r)) {
    return too_many_dims(ctx);
  }
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(ctx.resize(out, shape.span()));
  const int32_t* from = self.strides;
  const int32_t* to = out.strides;
  CopyBlock block;
  for (size_t d = 0; d < c; ++d) block.push(self.sizes[d], from[d], to[d]);
  block.push(self.sizes[c], from[c], to[c] * r * r);
  block.push(r, from[c + 1], to[c] * r);
  block.push(r, from[c + 2], to[c]);
  block.push(shape.sizes[c + 1], from[c + 1] * r, to[c + 1]);
  block.push(shape.sizes[c + 2], from[c + 2] * r, to[c + 2]);
  strided_copy(ctx, self.data, out.data, block, element_size(self.dtype));
  return {};
}

}  // namespace rushlight::kernels
