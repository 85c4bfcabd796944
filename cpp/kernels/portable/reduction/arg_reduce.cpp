// The positions of maxima or minima along a dimension, with or without their values.
#include <algorithm>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/loops/reduction/reduce.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/reduction/reduce.h"

namespace rushlight::kernels {
namespace {

union Value {
  double d;
  int64_t i;
};

DType reduce_compute(DType dtype) {
  return is_floating(dtype) ? compute_dtype(dtype) : DType::Int64;
}
DType accumulator_of(DType compute) { return is_floating(compute) ? DType::Float64 : DType::Int64; }

Value load(const void* items, DType compute, size_t index) {
  Value value;
  if (compute == DType::Float32) {
    value.d = static_cast<double>(static_cast<const float*>(items)[index]);
  } else if (compute == DType::Float64) {
    value.d = static_cast<const double*>(items)[index];
  } else {
    value.i = static_cast<const int64_t*>(items)[index];
  }
  return value;
}

// Finds the maximum or minimum of a long row, piece by piece.
class RowScan {
 public:
  RowScan(DType compute, bool least)
      : compute_(compute),
        least_(least),
        find_((least ? arg_min() : arg_max()).row[compute_index(compute)]) {}

  // Adds the next n >= 1 elements, which have the computing type.
  void add(const void* items, size_t n) {
    const size_t here = find_(items, n);
    const Value value = load(items, compute_, here);
    if (seen_ == 0 || better(value)) {
      best_ = value;
      index_ = seen_ + static_cast<int64_t>(here);
    }
    seen_ += static_cast<int64_t>(n);
  }

  const Value& best() const { return best_; }
  int64_t index() const { return index_; }

 private:
  bool better(Value value) const {
    if (!is_floating(compute_)) return least_ ? value.i < best_.i : value.i > best_.i;
    if (value.d != value.d) return best_.d == best_.d;
    return least_ ? value.d < best_.d : value.d > best_.d;
  }

  DType compute_;
  bool least_;
  ArgRowFn find_;
  Value best_ = {};
  int64_t index_ = 0;
  int64_t seen_ = 0;
};

// Finds maxima or minima along one dimension. `values` may be nullptr.
class ArgReducer {
 public:
  ArgReducer(const Tensor& in, bool least, const ReducePlan& plan, Tensor* values, Tensor& indices)
      : compute_(reduce_compute(in.dtype)),
        least_(least),
        reader_(in, compute_),
        plan_(plan),
        values_(values),
        indices_(indices) {}

  void scan_row(int64_t offset, int64_t out_offset) {
    RowScan scan(compute_, least_);
    const size_t run = static_cast<size_t>(plan_.run);
    for (size_t done = 0; done < run;) {
      const size_t n = std::min(run - done, reader_.limit());
      scan.add(reader_.read(offset + static_cast<int64_t>(done), n), n);
      done += n;
    }
    best_[0] = scan.best();
    index_[0] = scan.index();
    write(1, out_offset, 1);
  }

  void scan_columns(int64_t offset, int64_t out_offset, size_t n) {
    scan_chunk(offset, n);
    write(n, out_offset, plan_.run_stride);
  }

 private:
  void scan_chunk(int64_t offset, size_t n) {
    const ArgColumnFn fold = (least_ ? arg_min() : arg_max()).column[compute_index(compute_)];
    Nest reduced = plan_.reduced;
    reduced.rewind();
    const void* first = reader_.read(offset, n);
    for (size_t i = 0; i < n; ++i) {
      best_[i] = load(first, compute_, i);
      index_[i] = 0;
    }
    for (int64_t position = 1; reduced.next(); ++position) {
      fold(reader_.read(offset + reduced.offset(), n), n, best_, index_, position);
    }
  }

  void write(size_t n, int64_t offset, int64_t stride) {
    write_run(index_, DType::Int64, n, indices_, offset, stride);
    if (values_ != nullptr) {
      write_run(best_, accumulator_of(compute_), n, *values_, offset, stride);
    }
  }

  DType compute_;
  bool least_;
  RunReader reader_;
  const ReducePlan& plan_;
  Tensor* values_;
  Tensor& indices_;
  Value best_[kChunk];
  int64_t index_[kChunk];
};

Status check_not_empty(KernelContext& ctx, const Tensor& in, int64_t count) {
  if (count > 0) return {};
  return ctx.fail(Code::InvalidArgument,
                  "self has sizes %s: there is no greatest or least of no elements",
                  ShapeText(in.shape()).text());
}

Status arg_along(KernelContext& ctx, const Tensor& in, int64_t dim_argument, bool keepdim,
                 bool least, Tensor* values, Tensor& indices) {
  size_t dim = 0;
  RL_TRY(wrap_dim(ctx, dim_argument, in.rank, &dim));
  RL_TRY(check_not_empty(ctx, in, in.rank == 0 ? 1 : in.sizes[dim]));
  bool reduced[kMaxRank] = {};
  reduced[dim] = true;
  const Shape shape = reduced_shape(in, reduced, keepdim);
  RL_TRY(ctx.resize(indices, shape.span()));
  if (values != nullptr) {
    RL_TRY(ctx.resize(*values, shape.span()));
    if (!same_layout(*values, indices)) {
      return ctx.fail(Code::InvalidArgument, "the two outputs have different orders of dimensions");
    }
  }
  if (indices.numel == 0) return {};
  const ReducePlan plan = plan_reduction(in, reduced, keepdim, indices);
  for_each_kept(ctx, plan, [&] {
    return [&, reducer = ArgReducer(in, least, plan, values, indices)](int64_t from, int64_t to,
                                                                       int64_t n) mutable {
      if (plan.inner_reduced) return reducer.scan_row(from, to);
      reducer.scan_columns(from, to, static_cast<size_t>(n));
    };
  });
  return {};
}

// The position in row-major order among all elements, for any order in memory.
Status arg_of_all(KernelContext& ctx, const Tensor& in, bool keepdim, bool least, Tensor& indices) {
  RL_TRY(check_not_empty(ctx, in, in.numel));
  Shape shape;
  for (size_t d = 0; keepdim && d < in.rank; ++d) shape.push(1);
  RL_TRY(ctx.resize(indices, shape.span()));
  uint8_t order[kMaxRank];
  for (size_t d = 0; d < in.rank; ++d) order[d] = static_cast<uint8_t>(d);
  Tensor logical = in;
  logical.dim_order = order;
  StridedReader reader;
  reader.init(broadcast_view(in, logical), logical);
  const DType compute = reduce_compute(in.dtype);
  RowScan scan(compute, least);
  alignas(64) uint64_t raw[kChunk];
  alignas(64) uint64_t items[kChunk];
  const size_t total = static_cast<size_t>(in.numel);
  for (size_t done = 0; done < total;) {
    const size_t n = std::min(kChunk, total - done);
    convert(reader.next(n, raw), in.dtype, items, compute, n);
    scan.add(items, n);
    done += n;
  }
  indices.as<int64_t>()[0] = scan.index();
  return {};
}

// argmax(self, dim, keepdim, out)
Status arg_extreme(KernelContext& ctx, EValue* const* args, bool least) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[3]->tensor();
  RL_TRY(check_real(ctx, "self", in));
  RL_TRY(check_dtype(ctx, "out", out, DType::Int64));
  const bool keepdim = args[2]->to_bool();
  if (args[1]->is_none()) return arg_of_all(ctx, in, keepdim, least, out);
  return arg_along(ctx, in, args[1]->to_int(), keepdim, least, nullptr, out);
}

// max(self, dim, keepdim, values, indices)
Status extreme_along(KernelContext& ctx, EValue* const* args, bool least) {
  const Tensor& in = args[0]->tensor();
  Tensor& values = args[3]->tensor();
  Tensor& indices = args[4]->tensor();
  RL_TRY(check_real(ctx, "self", in));
  RL_TRY(check_castable(ctx, in.dtype, values));
  RL_TRY(check_dtype(ctx, "indices", indices, DType::Int64));
  return arg_along(ctx, in, args[1]->to_int(), args[2]->to_bool(), least, &values, indices);
}

}  // namespace

Status argmax_out(KernelContext& ctx, EValue* const* args) { return arg_extreme(ctx, args, false); }

Status argmin_out(KernelContext& ctx, EValue* const* args) { return arg_extreme(ctx, args, true); }

Status max_dim_out(KernelContext& ctx, EValue* const* args) {
  return extreme_along(ctx, args, false);
}

Status min_dim_out(KernelContext& ctx, EValue* const* args) {
  return extreme_along(ctx, args, true);
}

}  // namespace rushlight::kernels
