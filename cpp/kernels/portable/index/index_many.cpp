// Advanced indexing by several tensors at once (index, index_put).
//
// The indices are broadcast to a common shape, which replaces the dimensions that they index. It is
// inserted at the first of these if they are neighbours, and otherwise at the front. A mask counts
// as one index tensor for each dimension that it covers, with the positions where it is true. These
// positions are not stored: a cursor finds them while the kernel iterates over the result in order.
#include <algorithm>
#include <cstring>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/index/indexing.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/movement/view.h"

namespace rushlight::kernels {
namespace {

// Iterates over the positions where a mask is true, in row-major order.
class MaskCursor {
 public:
  void init(const Tensor& mask) {
    mask_ = &mask;
    rewind();
  }
  int64_t at(size_t d) const { return at_[d]; }

  // Moves to the n-th true element, which must exist. Cheap if n is the current position or a later
  // one.
  void seek(int64_t n) {
    if (n < index_) rewind();
    while (index_ < n) next();
  }

 private:
  void rewind() {
    std::fill(at_, at_ + kMaxRank, 0);
    offset_ = 0;
    index_ = -1;
  }
  void next() {
    if (index_ >= 0) advance();
    while (mask_->as<uint8_t>()[offset_] == 0) advance();
    ++index_;
  }
  void advance() {
    for (size_t d = mask_->rank; d-- > 0;) {
      offset_ += mask_->strides[d];
      if (++at_[d] < mask_->sizes[d]) return;
      offset_ -= int64_t{mask_->strides[d]} * at_[d];
      at_[d] = 0;
    }
  }

  const Tensor* mask_ = nullptr;
  int64_t at_[kMaxRank];
  int64_t offset_ = 0;
  int64_t index_ = -1;
};

bool is_mask(const Tensor& index) {
  return index.dtype == DType::Bool || index.dtype == DType::UInt8;
}

int64_t count_true(const Tensor& mask) {
  int64_t n = 0;
  for (int64_t i = 0; i < mask.numel; ++i) n += mask.as<uint8_t>()[i] != 0;
  return n;
}

// One entry of `indices` that is not None.
struct Index {
  const Tensor* tensor;
  size_t dim;  // first dimension of self that it indexes
  size_t dims;
  int64_t count;              // for a mask: the number of true elements
  int64_t strides[kMaxRank];  // over the common shape; for a mask: in true elements
  MaskCursor cursor;
};

// All of `indices` applied to `self`, and the shape of the result.
struct Plan {
  Index indices[kMaxRank];
  size_t n = 0;
  Shape common;  // common shape of the indices
  Shape result;
  size_t front = 0;  // dimensions of the result before the common shape
  CopyBlock slice;   // elements of one position of the common shape; `to`: result's layout
  bool slice_empty = false;
};

size_t index_rank(const Index& index) { return is_mask(*index.tensor) ? 1 : index.tensor->rank; }
int64_t index_size(const Index& index, size_t d) {
  return is_mask(*index.tensor) ? index.count : index.tensor->sizes[d];
}

Status check_mask_shape(KernelContext& ctx, const Tensor& self, const Tensor& mask, size_t dim,
                        size_t k) {
  bool fits = dim + mask.rank <= self.rank;
  for (size_t d = 0; fits && d < mask.rank; ++d) fits = mask.sizes[d] == self.sizes[dim + d];
  if (fits) return {};
  return ctx.fail(
      Code::InvalidArgument,
      "indices[%zu], a mask of shape %s, does not fit self of shape %s at dimension %zu", k,
      ShapeText(mask.shape()).text(), ShapeText(self.shape()).text(), dim);
}

Status collect(KernelContext& ctx, const Tensor& self, const EValue& list, Plan* plan) {
  size_t dim = 0;
  for (size_t k = 0; k < list.size(); ++k) {
    const Tensor* t = list.tensor_at(k);
    if (t == nullptr) {
      ++dim;
      continue;
    }
    const size_t dims = is_mask(*t) ? t->rank : 1;
    if (is_mask(*t)) {
      RL_TRY(check_mask_shape(ctx, self, *t, dim, k));
    } else {
      RL_TRY(check_index_type(ctx, "an index", *t));
    }
    if (dim + dims > self.rank || plan->n == kMaxRank) {
      return ctx.fail(Code::InvalidArgument, "indices index more dimensions than self has (%u)",
                      static_cast<unsigned>(self.rank));
    }
    Index& index = plan->indices[plan->n++];
    index.tensor = t;
    index.dim = dim;
    index.dims = dims;
    if (is_mask(*t)) {
      index.count = count_true(*t);
      index.cursor.init(*t);
    }
    dim += dims;
  }
  if (dim > self.rank) {
    return ctx.fail(Code::InvalidArgument, "indices has %zu entries, but self has %u dimensions",
                    list.size(), static_cast<unsigned>(self.rank));
  }
  return {};
}

Status broadcast_indices(KernelContext& ctx, Plan* plan) {
  Shape& common = plan->common;
  for (size_t k = 0; k < plan->n; ++k) {
    common.rank = std::max(common.rank, index_rank(plan->indices[k]));
  }
  std::fill(common.sizes, common.sizes + common.rank, 1);
  for (size_t k = 0; k < plan->n; ++k) {
    const Index& index = plan->indices[k];
    const size_t lead = common.rank - index_rank(index);
    for (size_t d = lead; d < common.rank; ++d) {
      const int32_t size = static_cast<int32_t>(index_size(index, d - lead));
      if (size == 1 || size == common.sizes[d]) continue;
      if (common.sizes[d] != 1) {
        return ctx.fail(Code::InvalidArgument,
                        "the shapes of the indices cannot be broadcast: sizes %d and %d differ and "
                        "neither is 1",
                        static_cast<int>(common.sizes[d]), static_cast<int>(size));
      }
      common.sizes[d] = size;
    }
  }
  for (size_t k = 0; k < plan->n; ++k) {
    Index& index = plan->indices[k];
    const size_t lead = common.rank - index_rank(index);
    for (size_t d = 0; d < common.rank; ++d) {
      const bool repeated = d < lead || index_size(index, d - lead) == 1;
      const int64_t own = repeated || is_mask(*index.tensor) ? 1 : index.tensor->strides[d - lead];
      index.strides[d] = repeated ? 0 : own;
    }
  }
  return {};
}

// Computes the shape of the result, and the position of the common shape in it.
Status shape_result(KernelContext& ctx, const Tensor& self, Plan* plan, bool* indexed) {
  bool neighbours = true;
  for (size_t k = 0; k < plan->n; ++k) {
    const Index& index = plan->indices[k];
    for (size_t d = 0; d < index.dims; ++d) indexed[index.dim + d] = true;
    if (k > 0) {
      const Index& before = plan->indices[k - 1];
      neighbours = neighbours && before.dim + before.dims == index.dim;
    }
  }
  plan->front = plan->n > 0 && neighbours ? plan->indices[0].dim : 0;
  bool fits = true;
  const auto push = [&](int64_t size) { fits = plan->result.push(size) && fits; };
  size_t d = 0;
  for (; d < plan->front; ++d) push(self.sizes[d]);
  for (size_t c = 0; c < plan->common.rank; ++c) push(plan->common.sizes[c]);
  for (; d < self.rank; ++d) {
    if (!indexed[d]) push(self.sizes[d]);
  }
  if (fits) return {};
  return ctx.fail(Code::InvalidArgument, "the result has more than %zu dimensions", kMaxRank);
}

// Plans the indexing of `self` by `list`.
Status make_plan(KernelContext& ctx, const Tensor& self, const EValue& list, Plan* plan,
                 bool* indexed) {
  RL_TRY(collect(ctx, self, list, plan));
  RL_TRY(broadcast_indices(ctx, plan));
  return shape_result(ctx, self, plan, indexed);
}

void make_slice(const Tensor& self, const int64_t* layout, const bool* indexed, Plan* plan) {
  for (size_t d = 0, r = 0; d < self.rank; ++d) {
    if (r == plan->front) r += plan->common.rank;
    if (indexed[d]) continue;
    plan->slice.push(self.sizes[d], self.strides[d], layout[r++]);
  }
  plan->slice_empty = false;
  for (size_t d = 0; d < plan->slice.rank; ++d) {
    plan->slice_empty = plan->slice_empty || plan->slice.sizes[d] == 0;
  }
}

// Returns InvalidArgument unless all indices that are read are in range.
Status check_places(KernelContext& ctx, const Tensor& self, const Plan& plan) {
  for (size_t d = 0; d < plan.common.rank; ++d) {
    if (plan.common.sizes[d] == 0) return {};
  }
  for (size_t k = 0; k < plan.n; ++k) {
    const Index& index = plan.indices[k];
    const int64_t size = self.sizes[index.dim];
    if (is_mask(*index.tensor)) continue;
    RL_TRY(check_indices(ctx, *index.tensor, index.dim, size, -size));
  }
  return {};
}

// The offset in self that all indices together select. `offsets` says where each index is read.
int64_t locate(const Tensor& self, Plan* plan, const int64_t* offsets) {
  int64_t result = 0;
  for (size_t k = 0; k < plan->n; ++k) {
    Index& index = plan->indices[k];
    if (is_mask(*index.tensor)) {
      index.cursor.seek(offsets[k]);
      for (size_t d = 0; d < index.dims; ++d) {
        result += index.cursor.at(d) * self.strides[index.dim + d];
      }
      continue;
    }
    const int64_t size = self.sizes[index.dim];
    const int64_t i = index_at(*index.tensor, offsets[k]);
    result += (i < 0 ? i + size : i) * self.strides[index.dim];
  }
  return result;
}

constexpr int64_t kRun = 128;  // positions that are located at a time

// The same for n positions of the innermost common dimension, starting at `first`. `offsets` says
// where each index is read for the dimension's position 0. Not for masks.
void locate_run(const Tensor& self, const Plan& plan, const int64_t* offsets, int64_t first,
                int64_t n, int64_t* results) {
  std::fill(results, results + n, 0);
  for (size_t k = 0; k < plan.n; ++k) {
    const Index& index = plan.indices[k];
    const int64_t size = self.sizes[index.dim];
    const int64_t stride = self.strides[index.dim];
    const int64_t index_stride = index.strides[plan.common.rank - 1];
    const int64_t begin = offsets[k] + first * index_stride;
    const auto add = [&](const auto* values) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t value = values[i * index_stride];
        results[i] += (value < 0 ? value + size : value) * stride;
      }
    };
    if (index.tensor->dtype == DType::Int64) {
      add(index.tensor->as<const int64_t>() + begin);
    } else {
      add(index.tensor->as<const int32_t>() + begin);
    }
  }
}

// Runs `body(positions in self, n, offset in the result's layout, stride in it)` for runs that
// together cover the common shape. The indices must have been checked.
template <typename Body>
void for_each_run(const Tensor& self, Plan* plan, const int64_t* layout, Body body) {
  int64_t at[kMaxRank] = {};
  int64_t offsets[kMaxRank] = {};
  int64_t other = 0;
  for (size_t d = 0; d < plan->common.rank; ++d) {
    if (plan->common.sizes[d] == 0) return;
  }
  // The innermost dimension is a plain loop. With masks, positions are found one by one.
  bool masks = false;
  for (size_t k = 0; k < plan->n; ++k) masks = masks || is_mask(*plan->indices[k].tensor);
  const size_t rank = plan->common.rank;
  const size_t outer = masks || rank == 0 ? rank : rank - 1;
  const int64_t size = outer < rank ? plan->common.sizes[outer] : 1;
  const int64_t stride = outer < rank ? layout[plan->front + outer] : 0;
  for (;;) {
    int64_t places[kRun];
    for (int64_t first = 0, n = 0; first < size; first += n) {
      n = std::min(kRun, size - first);
      if (outer == rank) {
        places[0] = locate(self, plan, offsets);
      } else {
        locate_run(self, *plan, offsets, first, n, places);
      }
      body(places, n, other + first * stride, stride);
    }
    size_t d = outer;
    for (;;) {
      if (d == 0) return;
      --d;
      const int64_t back = ++at[d] < plan->common.sizes[d] ? 0 : plan->common.sizes[d];
      other += layout[plan->front + d] * (1 - back);
      for (size_t k = 0; k < plan->n; ++k) {
        offsets[k] += plan->indices[k].strides[d] * (1 - back);
      }
      if (back == 0) break;
      at[d] = 0;
    }
  }
}

// For positions that are one element each: copies elements from places[i] to i * stride, or back
// (`put`).
template <typename T>
void move_elements(void* self, const int64_t* places, int64_t n, void* other, int64_t stride,
                   bool put) {
  T* const a = static_cast<T*>(self);
  T* const b = static_cast<T*>(other);
  if (put) {
    for (int64_t i = 0; i < n; ++i) a[places[i]] = b[i * stride];
  } else {
    for (int64_t i = 0; i < n; ++i) b[i * stride] = a[places[i]];
  }
}
using MoveFn = void (*)(void* self, const int64_t* places, int64_t n, void* other, int64_t stride,
                        bool put);
// Returns nullptr if a position is more than one element, or if elements have another size.
MoveFn element_mover(const Plan& plan, size_t size) {
  for (size_t d = 0; d < plan.slice.rank; ++d) {
    if (plan.slice.sizes[d] != 1) return nullptr;
  }
  if (size == 1) return move_elements<uint8_t>;
  if (size == 2) return move_elements<uint16_t>;
  if (size == 4) return move_elements<uint32_t>;
  return size == 8 ? move_elements<uint64_t> : nullptr;
}

// Adds `values`, with the layout slice.to, to the slice of `self`.
void add_slice(const uint8_t* values, uint8_t* self, const CopyBlock& slice, int64_t size,
               FoldFn add, size_t d = 0) {
  const int64_t here = 0;
  if (d == slice.rank) return add(values, 0, self, &here, 1);
  for (int64_t i = 0; i < slice.sizes[d]; ++i) {
    add_slice(values + i * slice.to[d] * size, self + i * slice.from[d] * size, slice, size, add,
              d + 1);
  }
}

// The strides of `values` over the result's shape, to which it must broadcast.
Status value_layout(KernelContext& ctx, const Tensor& values, const Shape& result,
                    int64_t* layout) {
  bool fits = values.rank <= result.rank;
  const size_t lead = fits ? result.rank - values.rank : 0;
  for (size_t d = 0; fits && d < values.rank; ++d) {
    fits = values.sizes[d] == 1 || values.sizes[d] == result.sizes[lead + d];
    layout[lead + d] = values.sizes[d] == 1 ? 0 : values.strides[d];
  }
  std::fill(layout, layout + lead, 0);
  if (fits) return {};
  return ctx.fail(Code::InvalidArgument,
                  "values has shape %s, which does not broadcast to the indexed part's %s",
                  ShapeText(values.shape()).text(), ShapeText(result.span()).text());
}

// Writes `values` into `out`, which becomes a copy of self first, unless it is self. Everything
// that can be refused is refused before that.
Status put(KernelContext& ctx, const Tensor& self, const EValue& list, const Tensor& values,
           bool accumulate, Tensor& out) {
  if (values.dtype != self.dtype) {
    return ctx.fail(Code::InvalidArgument, "values is %s, but self is %s", dtype_name(values.dtype),
                    dtype_name(self.dtype));
  }
  Plan plan;
  bool indexed[kMaxRank] = {};
  int64_t layout[kMaxRank];
  RL_TRY(make_plan(ctx, self, list, &plan, indexed));
  RL_TRY(value_layout(ctx, values, plan.result, layout));
  const FoldFn add = fold_elements(Fold::Add, self.dtype);
  if (accumulate && add == nullptr) {
    return ctx.fail(Code::NotSupported, "self is %s, which cannot be added",
                    dtype_name(self.dtype));
  }
  RL_TRY(ctx.resize_like(out, self));  // also refuses a constant
  make_slice(out, layout, indexed, &plan);
  if (!plan.slice_empty) RL_TRY(check_places(ctx, self, plan));
  if (&out != &self) copy_all(self, out);
  if (plan.slice_empty) return {};
  CopyBlock back = plan.slice;
  std::swap_ranges(back.from, back.from + back.rank, back.to);
  const size_t size = element_size(self.dtype);
  const StridedCopy copy(back, size);
  const MoveFn move = element_mover(plan, size);
  const auto put_run = [&](const int64_t* places, int64_t n, int64_t other, int64_t stride) {
    uint8_t* const from = element_at(values, other);
    if (move != nullptr && !accumulate) return move(out.data, places, n, from, stride, true);
    if (move != nullptr) return add(from, stride, out.data, places, static_cast<size_t>(n));
    const int64_t bytes = static_cast<int64_t>(size);
    for (int64_t i = 0; i < n; ++i) {
      uint8_t* const to = element_at(out, places[i]);
      const uint8_t* const value = from + i * stride * bytes;
      if (accumulate) {
        add_slice(value, to, plan.slice, bytes, add);
      } else {
        copy.run(value, to);
      }
    }
  };
  for_each_run(out, &plan, layout, put_run);
  return {};
}

}  // namespace

// index(self, indices, *, out)
Status index_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  Tensor& out = args[2]->tensor();
  Plan plan;
  bool indexed[kMaxRank] = {};
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(make_plan(ctx, self, *args[1], &plan, indexed));
  RL_TRY(ctx.resize(out, plan.result.span()));
  int64_t layout[kMaxRank];
  std::copy(out.strides, out.strides + out.rank, layout);
  make_slice(self, layout, indexed, &plan);
  if (plan.slice_empty) return {};
  RL_TRY(check_places(ctx, self, plan));
  const StridedCopy copy(plan.slice, element_size(self.dtype));
  const MoveFn move = element_mover(plan, element_size(self.dtype));
  const auto get_run = [&](const int64_t* places, int64_t n, int64_t other, int64_t stride) {
    if (move != nullptr) return move(self.data, places, n, element_at(out, other), stride, false);
    for (int64_t i = 0; i < n; ++i) {
      copy.run(element_at(self, places[i]), element_at(out, other + i * stride));
    }
  };
  for_each_run(self, &plan, layout, get_run);
  return {};
}

// index_put(self, indices, values, accumulate, *, out)
Status index_put_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  Tensor& out = args[4]->tensor();
  RL_TRY(check_same_type(ctx, "self", self, out));
  return put(ctx, self, *args[1], args[2]->tensor(), args[3]->to_bool(), out);
}

// index_put_(self, indices, values, accumulate)
Status index_put_inplace(KernelContext& ctx, EValue* const* args) {
  Tensor& self = args[0]->tensor();
  return put(ctx, self, *args[1], args[2]->tensor(), args[3]->to_bool(), self);
}

}  // namespace rushlight::kernels
