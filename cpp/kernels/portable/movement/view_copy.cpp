// Operators that keep the row-major order of elements and change the shape around them: views, and
// rolls of the flattened tensor.
#include <algorithm>
#include <cstring>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"

namespace rushlight::kernels {
namespace {

// The offset of element `n` in row-major order.
int64_t offset_of(const Tensor& tensor, int64_t n) {
  int64_t offset = 0;
  for (size_t d = tensor.rank; d-- > 0;) {
    offset += n % tensor.sizes[d] * tensor.strides[d];
    n /= tensor.sizes[d];
  }
  return offset;
}

// Copies n elements in the row-major order of both tensors, from these positions on.
void copy_in_order(const Tensor& from, int64_t from_start, const Tensor& to, int64_t to_start,
                   int64_t n) {
  const size_t size = element_size(to.dtype);
  if (n == 0) return;
  if (from.is_contiguous() && to.is_contiguous()) {
    std::memmove(element_at(to, to_start), element_at(from, from_start),
                 static_cast<size_t>(n) * size);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(element_at(to, offset_of(to, to_start + i)),
                element_at(from, offset_of(from, from_start + i)), size);
  }
}

// A reshape in which one tensor is row-major, so that the other's dimensions describe both.
void copy_reshaped(const Tensor& self, const Tensor& out) {
  if (out.numel == 0) return;
  const bool flat_out = out.is_contiguous();
  if (self.is_contiguous() == flat_out) return copy_in_order(self, 0, out, 0, out.numel);
  const Tensor& shaped = flat_out ? self : out;
  int64_t flat_strides[kMaxRank];
  int64_t stride = 1;
  for (size_t d = shaped.rank; d-- > 0;) {
    flat_strides[d] = stride;
    stride *= shaped.sizes[d];
  }
  CopyBlock block;
  for (size_t d = 0; d < shaped.rank; ++d) {
    block.push(shaped.sizes[d], flat_out ? self.strides[d] : flat_strides[d],
               flat_out ? flat_strides[d] : out.strides[d]);
  }
  strided_copy(self.data, out.data, block, element_size(out.dtype));
}

// The shape that `size` requests, with a -1 replaced by the actual size.
Status view_shape(KernelContext& ctx, const Tensor& self, const EValue& size, Shape* shape) {
  size_t inferred = kMaxRank;
  int64_t known = 1;
  bool valid = size.size() <= kMaxRank;
  for (size_t d = 0; valid && d < size.size(); ++d) {
    int64_t s = size.int_at(d);
    if (s == -1) {
      valid = inferred == kMaxRank;
      inferred = d;
      s = 1;
    }
    valid = valid && shape->push(s) && !__builtin_mul_overflow(known, s, &known);
  }
  if (valid && inferred != kMaxRank) {
    valid = known != 0 && self.numel % known == 0 && self.numel / known <= INT32_MAX;
    if (valid) shape->sizes[inferred] = static_cast<int32_t>(self.numel / known);
  } else {
    valid = valid && known == self.numel;
  }
  if (valid) return {};
  return ctx.fail(Code::InvalidArgument,
                  "size does not fit self, which has %lld elements (shape %s)",
                  static_cast<long long>(self.numel), ShapeText(self.shape()).text());
}

struct Roll {
  size_t dim;
  int64_t shift;  // 0 <= shift < size
};

int64_t wrap_shift(int64_t shift, int64_t size) {
  if (size == 0) return 0;
  const int64_t rest = shift % size;
  return rest < 0 ? rest + size : rest;
}

// Each rolled dimension consists of two runs, and each combination of runs is one block.
void roll_blocks(const Tensor& self, const Tensor& out, const Roll* rolls, size_t n_rolls) {
  const size_t size = element_size(self.dtype);
  for (uint32_t choice = 0; choice < (uint32_t{1} << n_rolls); ++choice) {
    CopyBlock block;
    for (size_t d = 0; d < self.rank; ++d) {
      block.push(self.sizes[d], self.strides[d], out.strides[d]);
    }
    int64_t from = 0;
    int64_t to = 0;
    for (size_t r = 0; r < n_rolls; ++r) {
      const size_t d = rolls[r].dim;
      const int64_t kept = self.sizes[d] - rolls[r].shift;
      const bool wrapped = (choice >> r & 1) != 0;
      block.sizes[d] = wrapped ? rolls[r].shift : kept;
      from += wrapped ? kept * self.strides[d] : 0;
      to += wrapped ? 0 : rolls[r].shift * out.strides[d];
    }
    strided_copy(element_at(self, from), element_at(out, to), block, size);
  }
}

}  // namespace

Status view_copy_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  Tensor& out = args[2]->tensor();
  Shape shape;
  RL_TRY(view_shape(ctx, self, *args[1], &shape));
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(ctx.resize(out, shape.span()));
  copy_reshaped(self, out);
  return {};
}

Status roll_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const EValue& shifts = *args[1];
  const EValue& dims = *args[2];
  Tensor& out = args[3]->tensor();
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(ctx.resize_like(out, self));
  if (dims.size() == 0 && shifts.size() == 1) {
    const int64_t shift = wrap_shift(shifts.int_at(0), self.numel);
    copy_in_order(self, 0, out, shift, self.numel - shift);
    copy_in_order(self, self.numel - shift, out, 0, shift);
    return {};
  }
  if (dims.size() != shifts.size()) {
    return ctx.fail(Code::InvalidArgument, "shifts has %zu entries, but dims has %zu",
                    shifts.size(), dims.size());
  }
  Roll rolls[kMaxRank];
  size_t n_rolls = 0;
  for (size_t k = 0; k < dims.size(); ++k) {
    size_t dim = 0;
    RL_TRY(wrap_dim(ctx, dims.int_at(k), self.rank, &dim));
    if (self.rank == 0) continue;
    const int64_t shift = wrap_shift(shifts.int_at(k), self.sizes[dim]);
    size_t r = 0;
    while (r < n_rolls && rolls[r].dim != dim) ++r;
    if (r == n_rolls) rolls[n_rolls++] = {dim, 0};
    rolls[r].shift = wrap_shift(rolls[r].shift + shift, self.sizes[dim]);
  }
  roll_blocks(self, out, rolls, n_rolls);
  return {};
}

}  // namespace rushlight::kernels
