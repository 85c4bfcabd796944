// Operators that select or replace elements along one dimension by one index tensor: index_select,
// embedding, gather and scatter.
#include <algorithm>
#include <cstring>
#include <limits>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/index/indexing.h"
#include "rushlight/kernels/portable/movement/creation.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/reduction/reduce.h"
#include "rushlight/kernels/portable/rows.h"

namespace rushlight::kernels {
namespace {

// Iterates over the elements of an index tensor and, in parallel, over two other tensors.
struct Walk {
  const Tensor* index;
  size_t dim;          // dimension of the table, for messages
  int64_t limit;       // indices are from 0 to limit - 1
  int64_t dim_stride;  // of the table; multiplied by the index
  // Strides for each dimension of `index`.
  int64_t table[kMaxRank] = {};
  int64_t other[kMaxRank] = {};

  Walk(const Tensor& i, const Tensor& t, size_t d)
      : index(&i),
        dim(d),
        limit(t.rank == 0 ? 1 : t.sizes[d]),
        dim_stride(t.rank == 0 ? 0 : t.strides[d]) {}
};

// Calls the body for the index elements of one row of the last dimension, piece by piece.
template <typename T, typename Body>
Status run_row(KernelContext& ctx, const Walk& walk, const T* index, int64_t n, int64_t table,
               int64_t other, Body& body) {
  const size_t last = walk.index->rank == 0 ? 0 : walk.index->rank - 1U;
  const int64_t stride = walk.index->rank == 0 ? 0 : walk.index->strides[last];
  const int64_t table_stride = walk.table[last];
  const int64_t other_stride = walk.other[last];
  const uint64_t limit = static_cast<uint64_t>(walk.limit);
  const uint64_t dim_stride = static_cast<uint64_t>(walk.dim_stride);
  int64_t places[kChunk];
  for (int64_t done = 0; done < n; done += static_cast<int64_t>(kChunk)) {
    const int64_t count = std::min(n - done, static_cast<int64_t>(kChunk));
    const T* here = index + done * stride;
    bool fits = true;
    for (int64_t k = 0; k < count; ++k) {
      // As an unsigned number, a negative index exceeds any limit, and the offset may overflow.
      const uint64_t i = static_cast<uint64_t>(here[k * stride]);
      fits &= i < limit;
      const uint64_t start = static_cast<uint64_t>(table + (done + k) * table_stride);
      places[k] = static_cast<int64_t>(start + i * dim_stride);
    }
    for (int64_t k = 0; k < count && !fits; ++k) {
      const int64_t i = static_cast<int64_t>(here[k * stride]);
      if (static_cast<uint64_t>(i) >= limit) {
        return index_out_of_range(ctx, i, walk.dim, walk.limit, 0);
      }
    }
    body(places, other + done * other_stride, other_stride, count);
  }
  return {};
}

// Runs `body(places, other, stride, n)` for all elements, piece by piece in row-major order.
// `places` are n offsets in the table. `other` is the offset of the first element in the other
// tensor, where elements are `stride` apart.
template <typename Body>
Status run(KernelContext& ctx, const Walk& walk, Body body) {
  const Tensor& index = *walk.index;
  if (index.numel == 0) return {};
  const size_t outer = index.rank == 0 ? 0 : index.rank - 1U;
  const int64_t n = index.rank == 0 ? 1 : index.sizes[outer];
  int64_t at[kMaxRank] = {};
  int64_t index_offset = 0;
  int64_t table = 0;
  int64_t other = 0;
  for (;;) {
    if (index.dtype == DType::Int64) {
      RL_TRY(run_row(ctx, walk, index.as<int64_t>() + index_offset, n, table, other, body));
    } else {
      RL_TRY(run_row(ctx, walk, index.as<int32_t>() + index_offset, n, table, other, body));
    }
    size_t d = outer;
    for (;;) {
      if (d == 0) return {};
      --d;
      index_offset += index.strides[d];
      table += walk.table[d];
      other += walk.other[d];
      if (++at[d] < index.sizes[d]) break;
      index_offset -= index.strides[d] * at[d];
      table -= walk.table[d] * at[d];
      other -= walk.other[d] * at[d];
      at[d] = 0;
    }
  }
}

// Copies a block of `each` elements from the table to the other tensor for every index. All indices
// are checked first.
Status copy_blocks(KernelContext& ctx, const Walk& walk, const Tensor& table, const Tensor& other,
                   const StridedCopy& copy, int64_t each) {
  const int64_t size = static_cast<int64_t>(element_size(table.dtype));
  const uint8_t* from_start = table.as<uint8_t>();
  uint8_t* to_start = other.as<uint8_t>();
  const auto copy_block = [&](int64_t from, int64_t to) {
    copy.run(from_start + from * size, to_start + to * size);
  };
  const Tensor& index = *walk.index;
  RL_TRY(check_indices(ctx, index, walk.dim, walk.limit, 0));
  const int64_t grain = kGrain / std::max<int64_t>(each, 1) + 1;
  if (ctx.threads() == 1 || index.numel <= grain) {
    return run(ctx, walk, [&](const int64_t* places, int64_t to, int64_t stride, int64_t n) {
      for (int64_t k = 0; k < n; ++k) copy_block(places[k], to + k * stride);
    });
  }
  Nest places;
  for (size_t d = index.rank; d-- > 0;) {
    places.add(index.sizes[d], index.strides[d], walk.other[d]);
  }
  ctx.parallel(index.numel, grain, [&](int64_t begin, int64_t end) {
    Nest here = places;
    here.seek(begin);
    for (int64_t position = begin; position < end; ++position, here.next()) {
      copy_block(index_at(index, here.offset()) * walk.dim_stride, here.second_offset());
    }
  });
  return {};
}

// Copies n elements from table[places[k]] to other[k * stride], or in the other direction.
template <typename T, bool kScatter>
void move(void* table_in, const int64_t* places, void* other_in, int64_t stride, int64_t n) {
  T* table = static_cast<T*>(table_in);
  T* other = static_cast<T*>(other_in);
  for (int64_t k = 0; k < n; ++k) {
    if constexpr (kScatter) {
      table[places[k]] = other[k * stride];
    } else {
      other[k * stride] = table[places[k]];
    }
  }
}

// The function for elements of 1, 2, 4, 8 or 16 bytes.
using MoveFn = void (*)(void* table, const int64_t* places, void* other, int64_t stride, int64_t n);
template <bool kScatter>
MoveFn move_of(size_t size) {
  switch (size) {
    case 1:
      return move<uint8_t, kScatter>;
    case 2:
      return move<uint16_t, kScatter>;
    case 4:
      return move<uint32_t, kScatter>;
    case 8:
      return move<uint64_t, kScatter>;
    default:
      return move<Bytes16, kScatter>;
  }
}

// Scatters from `src`, either all of it or a single element, into `out`.
Status scatter(KernelContext& ctx, const Walk& walk, uint8_t* src, const Tensor& out) {
  const int64_t size = static_cast<int64_t>(element_size(out.dtype));
  const MoveFn move = move_of<true>(element_size(out.dtype));
  return run(ctx, walk, [&](const int64_t* places, int64_t other, int64_t stride, int64_t n) {
    move(out.as<uint8_t>(), places, src + other * size, stride, n);
  });
}

// The same, with a fold.
Status fold_along(KernelContext& ctx, const Walk& walk, const uint8_t* src, FoldFn fold,
                  const Tensor& out) {
  const int64_t size = static_cast<int64_t>(element_size(out.dtype));
  return run(ctx, walk, [&](const int64_t* places, int64_t other, int64_t stride, int64_t n) {
    fold(src + other * size, stride, out.as<uint8_t>(), places, static_cast<size_t>(n));
  });
}

// For gather and scatter, where `table` and `other` are indexed by the element's own position.
Walk elementwise_walk(const Tensor& index, const Tensor& table, size_t dim, const Tensor& other) {
  Walk walk(index, table, dim);
  for (size_t d = 0; d < index.rank; ++d) {
    walk.table[d] = d == dim || d >= table.rank ? 0 : table.strides[d];
    walk.other[d] = d < other.rank ? other.strides[d] : 0;
  }
  return walk;
}

// A tensor without dimensions.
Tensor one_element(DType dtype, void* element) {
  Tensor scalar;
  scalar.data = element;
  scalar.dtype = dtype;
  scalar.numel = 1;
  return scalar;
}

// Checks that `index` has the rank of `tensor` (0-d counts as 1-d) and is not larger in any
// dimension except `dim`.
Status check_index_shape(KernelContext& ctx, const Tensor& index, const char* name,
                         const Tensor& tensor, size_t dim) {
  bool fits = std::max<int>(index.rank, 1) == std::max<int>(tensor.rank, 1);
  for (size_t d = 0; fits && d < index.rank; ++d) {
    fits = d == dim || index.sizes[d] <= (d < tensor.rank ? tensor.sizes[d] : 1);
  }
  if (fits || index.numel == 0) return {};
  return ctx.fail(Code::InvalidArgument, "index has shape %s, which does not fit %s of shape %s",
                  ShapeText(index.shape()).text(), name, ShapeText(tensor.shape()).text());
}

// Checks the arguments that all scatters share, and every index, and makes `out` a copy of self.
Status begin_scatter(KernelContext& ctx, EValue* const* args, Tensor& out, size_t* dim) {
  const Tensor& self = args[0]->tensor();
  const Tensor& index = args[2]->tensor();
  RL_TRY(wrap_dim(ctx, args[1]->to_int(), self.rank, dim));
  RL_TRY(check_index_type(ctx, "index", index));
  RL_TRY(check_index_shape(ctx, index, "self", self, *dim));
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(check_indices(ctx, index, *dim, self.rank == 0 ? 1 : self.sizes[*dim], 0));
  RL_TRY(ctx.resize_like(out, self));
  copy_all(self, out);
  return {};
}

Status check_src(KernelContext& ctx, const Tensor& index, const Tensor& src, const Tensor& out) {
  RL_TRY(check_same_type(ctx, "src", src, out));
  return check_index_shape(ctx, index, "src", src, kMaxRank);
}

// index_select along a dimension that is consecutive in `out`: row by row, one piece of the index
// at a time. `self` is small enough for int32 offsets.
Status gather_inner(KernelContext& ctx, const Tensor& self, size_t dim, const Tensor& index,
                    const Tensor& out) {
  Nest rows;
  for (size_t k = self.rank; k-- > 0;) {
    const size_t d = self.dim_order[k];
    if (d != dim) rows.add(self.sizes[d], self.strides[d], out.strides[d]);
  }
  const size_t size = element_size(self.dtype);
  RL_TRY(check_indices(ctx, index, dim, self.sizes[dim], 0));
  if (out.numel == 0) return {};
  int32_t offsets[kChunk];
  for (int64_t done = 0; done < index.numel; done += static_cast<int64_t>(kChunk)) {
    const int64_t n = std::min(static_cast<int64_t>(kChunk), index.numel - done);
    for (int64_t k = 0; k < n; ++k) {
      offsets[k] = static_cast<int32_t>(index_at(index, done + k) * self.strides[dim]);
    }
    ctx.parallel(rows.count(), kGrain / n + 1, [&](int64_t begin, int64_t end) {
      RowReader reader(self, self.dtype);
      Nest here = rows;
      here.seek(begin);
      for (int64_t row = begin; row < end; ++row, here.next()) {
        const void* picked = reader.read_indexed(here.offset(), offsets, static_cast<size_t>(n));
        std::memcpy(element_at(out, here.second_offset() + done), picked,
                    static_cast<size_t>(n) * size);
      }
    });
  }
  return {};
}

}  // namespace

// index_select(self, dim, index, *, out)
Status index_select_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const Tensor& index = args[2]->tensor();
  Tensor& out = args[3]->tensor();
  size_t dim = 0;
  RL_TRY(wrap_dim(ctx, args[1]->to_int(), self.rank, &dim));
  RL_TRY(check_index_type(ctx, "index", index));
  RL_TRY(check_same_type(ctx, "self", self, out));
  if (index.rank > 1 || (self.rank == 0 && index.numel != 1)) {
    return ctx.fail(Code::InvalidArgument, "index has shape %s, but must have one dimension%s",
                    ShapeText(index.shape()).text(), self.rank == 0 ? " of size 1" : "");
  }
  Shape shape(self.shape());
  if (self.rank > 0) shape.sizes[dim] = static_cast<int32_t>(index.numel);
  RL_TRY(ctx.resize(out, shape.span()));
  const bool small = self.numel <= INT32_MAX && element_size(self.dtype) <= sizeof(uint64_t);
  if (small && self.rank > 1 && index.rank == 1 && out.strides[dim] == 1) {
    return gather_inner(ctx, self, dim, index, out);
  }
  CopyBlock slice;
  for (size_t d = 0; d < self.rank; ++d) {
    if (d != dim) slice.push(self.sizes[d], self.strides[d], out.strides[d]);
  }
  Walk walk(index, self, dim);
  if (index.rank == 1 && self.rank > 0) walk.other[0] = out.strides[dim];
  const StridedCopy copy(slice, element_size(self.dtype));
  return copy_blocks(ctx, walk, self, out, copy, out.numel / std::max<int64_t>(index.numel, 1));
}

// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse, *, out)
Status embedding_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& weight = args[0]->tensor();
  const Tensor& indices = args[1]->tensor();
  Tensor& out = args[5]->tensor();
  RL_TRY(check_rank(ctx, "weight", weight, 2));
  RL_TRY(check_index_type(ctx, "indices", indices));
  RL_TRY(check_same_type(ctx, "weight", weight, out));
  Shape shape(indices.shape());
  if (!shape.push(weight.sizes[1])) {
    return ctx.fail(Code::InvalidArgument, "indices has shape %s: too many dimensions",
                    ShapeText(indices.shape()).text());
  }
  RL_TRY(ctx.resize(out, shape.span()));
  CopyBlock row;
  row.push(weight.sizes[1], weight.strides[1], out.strides[indices.rank]);
  Walk walk(indices, weight, 0);
  for (size_t d = 0; d < indices.rank; ++d) walk.other[d] = out.strides[d];
  const StridedCopy copy(row, element_size(weight.dtype));
  return copy_blocks(ctx, walk, weight, out, copy, weight.sizes[1]);
}

// gather(self, dim, index, sparse_grad, *, out)
Status gather_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const Tensor& index = args[2]->tensor();
  Tensor& out = args[4]->tensor();
  size_t dim = 0;
  RL_TRY(wrap_dim(ctx, args[1]->to_int(), self.rank, &dim));
  RL_TRY(check_index_type(ctx, "index", index));
  RL_TRY(check_index_shape(ctx, index, "self", self, dim));
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(check_indices(ctx, index, dim, self.rank == 0 ? 1 : self.sizes[dim], 0));
  RL_TRY(ctx.resize_like(out, index));
  const MoveFn move = move_of<false>(element_size(self.dtype));
  const Walk walk = elementwise_walk(index, self, dim, out);
  return run(ctx, walk, [&](const int64_t* places, int64_t other, int64_t stride, int64_t n) {
    move(self.as<uint8_t>(), places, element_at(out, other), stride, n);
  });
}

// scatter(self, dim, index, src, *, out)
Status scatter_src_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& index = args[2]->tensor();
  const Tensor& src = args[3]->tensor();
  Tensor& out = args[4]->tensor();
  size_t dim = 0;
  RL_TRY(check_src(ctx, index, src, out));
  RL_TRY(begin_scatter(ctx, args, out, &dim));
  return scatter(ctx, elementwise_walk(index, out, dim, src), src.as<uint8_t>(), out);
}

// scatter(self, dim, index, value, *, out)
Status scatter_value_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& index = args[2]->tensor();
  Tensor& out = args[4]->tensor();
  size_t dim = 0;
  alignas(16) uint8_t element[16];
  Tensor scalar = one_element(out.dtype, element);  // a tensor, so that fill converts the value
  RL_TRY(fill(ctx, scalar, *args[3]));
  RL_TRY(begin_scatter(ctx, args, out, &dim));
  return scatter(ctx, elementwise_walk(index, out, dim, scalar), element, out);
}

namespace {

// Returns InvalidArgument unless `name` is allowed for the argument `reduce` here.
Status fold_by_name(KernelContext& ctx, StringView name, bool old_names, Fold* fold) {
  struct Named {
    const char* name;
    Fold fold;
  };
  constexpr Named kOld[] = {{"add", Fold::Add}, {"multiply", Fold::Multiply}};
  constexpr Named kNew[] = {
      {"sum", Fold::Add}, {"prod", Fold::Multiply}, {"amax", Fold::Max}, {"amin", Fold::Min}};
  const Named* names = old_names ? kOld : kNew;
  for (size_t k = 0; k < (old_names ? 2 : 4); ++k) {
    if (name == StringView(names[k].name)) {
      *fold = names[k].fold;
      return {};
    }
  }
  return ctx.fail(Code::InvalidArgument, "reduce is '%.*s', but must be %s", name.len(),
                  name.data(), old_names ? "add or multiply" : "sum, prod, amax or amin");
}

Status check_foldable(KernelContext& ctx, FoldFn fold, const Tensor& out) {
  if (fold != nullptr) return {};
  return ctx.fail(Code::NotSupported, "self is %s, which cannot be computed with",
                  dtype_name(out.dtype));
}

// The neutral element of a fold.
void neutral_element(Fold fold, DType dtype, void* element) {
  const double infinity = std::numeric_limits<double>::infinity();
  int64_t number = fold == Fold::Multiply ? 1 : 0;
  if (fold == Fold::Add || fold == Fold::Multiply) {
    convert(&number, DType::Int64, element, dtype, 1);
  } else if (is_floating(dtype)) {
    const double bound = fold == Fold::Max ? -infinity : infinity;
    convert(&bound, DType::Float64, element, dtype, 1);
  } else {
    const bool is_signed = dtype != DType::UInt8 && dtype != DType::Bool;
    const int bits = static_cast<int>(element_size(dtype)) * 8;
    const int64_t greatest = dtype == DType::Bool ? 1
                             : is_signed          ? INT64_MAX >> (64 - bits)
                                                  : UINT8_MAX;
    number = fold == Fold::Min ? greatest : (is_signed ? -greatest - 1 : 0);
    convert(&number, DType::Int64, element, dtype, 1);
  }
}

// A float copy, in scratch memory and of the same layout, of a float16 or bfloat16 tensor. It has
// no data if there is not enough scratch memory.
Tensor widened(KernelContext& ctx, const Tensor& half) {
  Tensor wide = half;
  wide.dtype = DType::Float32;
  wide.data = ctx.scratch(static_cast<size_t>(half.numel) * sizeof(float));
  if (wide.data != nullptr) {
    convert(half.data, half.dtype, wide.data, DType::Float32, static_cast<size_t>(half.numel));
  }
  return wide;
}

// Folds every element of src into the element of out that its index names. 16-bit floats are summed
// in float32 and rounded once, as in eager, unless there is not enough scratch memory.
Status fold_into(KernelContext& ctx, const Tensor& index, size_t dim, const Tensor& src, Fold fold,
                 Tensor& out) {
  if (out.dtype == DType::Float16 || out.dtype == DType::BFloat16) {
    const Tensor wide_src = widened(ctx, src);
    Tensor wide = widened(ctx, out);
    if (wide_src.data != nullptr && wide.data != nullptr) {
      RL_TRY(fold_into(ctx, index, dim, wide_src, fold, wide));
      convert(wide.data, DType::Float32, out.data, out.dtype, static_cast<size_t>(out.numel));
      return {};
    }
  }
  return fold_along(ctx, elementwise_walk(index, out, dim, src), src.as<uint8_t>(),
                    fold_elements(fold, out.dtype), out);
}

// Folds src into a copy of self. Unless self is included, the elements of the copy that are folded
// into start from the fold's neutral element.
Status scatter_fold(KernelContext& ctx, EValue* const* args, Fold fold, bool include_self,
                    Tensor& out) {
  const Tensor& index = args[2]->tensor();
  const Tensor& src = args[3]->tensor();
  size_t dim = 0;
  RL_TRY(check_foldable(ctx, fold_elements(fold, out.dtype), out));
  RL_TRY(check_src(ctx, index, src, out));
  RL_TRY(begin_scatter(ctx, args, out, &dim));
  if (!include_self) {
    alignas(8) uint8_t neutral[sizeof(double)];
    neutral_element(fold, out.dtype, neutral);
    RL_TRY(scatter(ctx, elementwise_walk(index, out, dim, one_element(out.dtype, neutral)), neutral,
                   out));
  }
  return fold_into(ctx, index, dim, src, fold, out);
}

}  // namespace

// scatter_add(self, dim, index, src, *, out)
Status scatter_add_out(KernelContext& ctx, EValue* const* args) {
  return scatter_fold(ctx, args, Fold::Add, true, args[4]->tensor());
}

// scatter(self, dim, index, src, *, reduce, out)
Status scatter_reduce_out(KernelContext& ctx, EValue* const* args) {
  Fold fold = Fold::Add;
  RL_TRY(fold_by_name(ctx, args[4]->string(), true, &fold));
  return scatter_fold(ctx, args, fold, true, args[5]->tensor());
}

// scatter(self, dim, index, value, *, reduce, out)
Status scatter_value_reduce_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& index = args[2]->tensor();
  Tensor& out = args[5]->tensor();
  Fold fold = Fold::Add;
  size_t dim = 0;
  RL_TRY(fold_by_name(ctx, args[4]->string(), true, &fold));
  const FoldFn join = fold_elements(fold, out.dtype);
  RL_TRY(check_foldable(ctx, join, out));
  alignas(16) uint8_t element[16];
  Tensor scalar = one_element(out.dtype, element);
  RL_TRY(fill(ctx, scalar, *args[3]));
  RL_TRY(begin_scatter(ctx, args, out, &dim));
  return fold_along(ctx, elementwise_walk(index, out, dim, scalar), element, join, out);
}

// scatter_reduce(self, dim, index, src, reduce, *, include_self, out)
Status scatter_reduce_two_out(KernelContext& ctx, EValue* const* args) {
  Fold fold = Fold::Add;
  RL_TRY(fold_by_name(ctx, args[4]->string(), false, &fold));
  return scatter_fold(ctx, args, fold, args[5]->to_bool(), args[6]->tensor());
}

}  // namespace rushlight::kernels
