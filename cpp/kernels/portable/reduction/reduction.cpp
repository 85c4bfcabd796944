// Sums, products, means, variances, extremes and "any" over sets of dimensions.
#include <algorithm>
#include <limits>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/elementwise/elementwise.h"
#include "rushlight/kernels/portable/loops/reduction/reduce.h"
#include "rushlight/kernels/portable/movement/creation.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/reduction/reduce.h"

namespace rushlight::kernels {
namespace {

union Accumulator {
  double d;
  int64_t i;
};

struct Reduction {
  const ReduceLoops* fold = &reduce_sum();
  DType compute = DType::Float32;  // Float32, Float64, Int64 or Bool
  Accumulator init = {};
  double divisor = 1.0;  // divides the result, for floating accumulators
  // If not nullptr, these give the sum of squared differences from the mean instead of the sum.
  const ReduceLoops* deviation = nullptr;
  Tensor* mean_out = nullptr;  // with `deviation`: where to store the mean, or nullptr

  bool floating() const { return is_floating(compute); }
  DType accumulator() const { return floating() ? DType::Float64 : DType::Int64; }
};

// If one result has more than kSplit elements, they are divided into at most this many parts, which
// are summed separately. The division does not depend on the number of threads.
constexpr int64_t kMaxParts = 64;
constexpr int64_t kSplit = 4 * kGrain;

// Computes one run of results.
class Reducer {
 public:
  Reducer(const Tensor& in, const Reduction& what, const ReducePlan& plan, Tensor& out)
      : in_(in), reader_(in, what.compute), what_(what), plan_(plan), out_(out) {}

  // Computes the result at `out_offset` from the elements that start at `offset`.
  void reduce_row(int64_t offset, int64_t out_offset) {
    const auto fold = [&](const ReduceLoops& loops, Accumulator init, const double* mean) {
      acc_[0] = fold_units(loops, init, offset, mean, 0, units());
    };
    finish_row(fold, out_offset);
  }

  // The same, in parts.
  void reduce_long_row(KernelContext& ctx, int64_t offset, int64_t out_offset) {
    const int64_t per_part = (units() + kMaxParts - 1) / kMaxParts;
    const int64_t parts = (units() + per_part - 1) / per_part;
    const auto fold = [&](const ReduceLoops& loops, Accumulator init, const double* mean) {
      ctx.parallel(parts, 1, [&](int64_t begin, int64_t end) {
        Reducer part(in_, what_, plan_, out_);
        for (int64_t p = begin; p < end; ++p) {
          const int64_t last = std::min(units(), (p + 1) * per_part);
          acc_[p] = part.fold_units(loops, init, offset, mean, p * per_part, last);
        }
      });
      for (int64_t p = 1; p < parts; ++p) combine(acc_ + p, 1);
    };
    finish_row(fold, out_offset);
  }

  // Computes n adjacent results.
  void reduce_columns(int64_t offset, int64_t out_offset, size_t n) {
    fold_columns(*what_.fold, what_.init, offset, n, nullptr);
    if (what_.deviation != nullptr) {
      for (size_t i = 0; i < n; ++i) {
        mean_[i] = acc_[i].d / static_cast<double>(plan_.reduced_count);
      }
      write_mean(n, out_offset, plan_.run_stride);
      fold_columns(*what_.deviation, {}, offset, n, mean_);
    }
    finish(n, out_offset, plan_.run_stride);
  }

 private:
  static constexpr int64_t kUnit = kGrain / 2;  // elements of a run that are never divided

  int64_t units_per_run() const { return (plan_.run + kUnit - 1) / kUnit; }
  int64_t units() const { return plan_.reduced.count() * units_per_run(); }

  template <typename Fold>
  void finish_row(Fold fold, int64_t out_offset) {
    fold(*what_.fold, what_.init, nullptr);
    if (what_.deviation != nullptr) {
      mean_[0] = acc_[0].d / static_cast<double>(plan_.reduced_count);
      write_mean(1, out_offset, 1);
      fold(*what_.deviation, {}, mean_);
    }
    finish(1, out_offset, 1);
  }

  // Folds units first..last - 1 of the elements of one result.
  Accumulator fold_units(const ReduceLoops& loops, Accumulator init, int64_t offset,
                         const double* mean, int64_t first, int64_t last) {
    const ReduceRowFn fold = loops.row[compute_index(what_.compute)];
    const int64_t per_run = units_per_run();
    Accumulator result = init;
    Nest reduced = plan_.reduced;
    reduced.seek(first / per_run);
    for (int64_t unit = first, piece = first % per_run; unit < last; ++unit) {
      const int64_t end = std::min(plan_.run, (piece + 1) * kUnit);
      for (int64_t done = piece * kUnit; done < end;) {
        const size_t n = std::min(static_cast<size_t>(end - done), reader_.limit());
        fold(reader_.read(offset + reduced.offset() + done, n), n, &result, mean);
        done += static_cast<int64_t>(n);
      }
      if (++piece == per_run) {
        piece = 0;
        reduced.next();
      }
    }
    return result;
  }

  // Folds n more accumulators into the first ones. Those of squared deviations are sums, too.
  void combine(const Accumulator* more, size_t n) {
    what_.fold->column[compute_index(what_.accumulator())](more, n, acc_, nullptr);
  }

  void fold_columns(const ReduceLoops& loops, Accumulator init, int64_t offset, size_t n,
                    double* mean) {
    const ReduceColumnFn fold = loops.column[compute_index(what_.compute)];
    Nest reduced = plan_.reduced;
    // If the columns of the next position follow in memory, several positions form one run.
    size_t together = 1;
    if (reduced.dims() > 0 && reduced.stride(0) == static_cast<int64_t>(n)) {
      together = std::min(kChunk / n, static_cast<size_t>(reduced.size(0)));
    }
    if (together <= 1) {
      std::fill(acc_, acc_ + n, init);
      reduced.rewind();
      do {
        fold(reader_.read(offset + reduced.offset(), n), n, acc_, mean);
      } while (reduced.next());
      return;
    }
    const size_t size = static_cast<size_t>(reduced.size(0));
    reduced.drop_inner();
    reduced.rewind();
    std::fill(acc_, acc_ + together * n, init);
    for (size_t i = n; mean != nullptr && i < together * n; ++i) mean[i] = mean[i - n];
    do {
      for (size_t done = 0; done < size; done += together) {
        const size_t count = std::min(together, size - done) * n;
        const int64_t here = offset + reduced.offset() + static_cast<int64_t>(done * n);
        fold(reader_.read(here, count), count, acc_, mean);
      }
    } while (reduced.next());
    for (size_t k = 1; k < together; ++k) combine(acc_ + k * n, n);
  }

  void write_mean(size_t n, int64_t offset, int64_t stride) {
    if (what_.mean_out == nullptr) return;
    write_run(mean_, DType::Float64, n, *what_.mean_out, offset, stride);
  }

  void finish(size_t n, int64_t offset, int64_t stride) {
    if (what_.divisor != 1.0) {
      for (size_t i = 0; i < n; ++i) acc_[i].d /= what_.divisor;
    }
    write_run(acc_, what_.accumulator(), n, out_, offset, stride);
  }

  const Tensor& in_;
  RunReader reader_;
  const Reduction& what_;
  const ReducePlan& plan_;
  Tensor& out_;
  Accumulator acc_[kChunk];
  double mean_[kChunk];
};

// The result of a reduction over no elements.
Status fill_empty(KernelContext& ctx, const Reduction& what, Tensor& out) {
  EValue value;
  if (what.floating()) {
    value.set_double(what.init.d / what.divisor);
  } else {
    value.set_int(what.init.i);
  }
  return fill(ctx, out, value);
}

// Reduces over the flagged dimensions into `out`, which it resizes.
Status reduce(KernelContext& ctx, const Tensor& in, const bool* reduced, bool keepdim,
              const Reduction& what, Tensor& out) {
  if (what.fold->row[compute_index(what.compute)] == nullptr) return no_loop(ctx, what.compute);
  const Shape shape = reduced_shape(in, reduced, keepdim);
  RL_TRY(ctx.resize(out, shape.span()));
  if (what.mean_out != nullptr) {
    RL_TRY(ctx.resize(*what.mean_out, shape.span()));
    if (!same_layout(*what.mean_out, out)) {
      return ctx.fail(Code::InvalidArgument, "the two outputs have different orders of dimensions");
    }
  }
  if (out.numel == 0) return {};
  if (in.numel == 0) {
    if (what.mean_out != nullptr) RL_TRY(fill_empty(ctx, what, *what.mean_out));
    return fill_empty(ctx, what, out);
  }
  const ReducePlan plan = plan_reduction(in, reduced, keepdim, out);
  if (plan.inner_reduced && plan.reduced_count > kSplit) {
    Reducer reducer(in, what, plan, out);
    Nest kept = plan.kept;
    kept.rewind();
    do {
      reducer.reduce_long_row(ctx, kept.offset(), kept.second_offset());
    } while (kept.next());
    return {};
  }
  for_each_kept(ctx, plan, [&] {
    return
        [&, reducer = Reducer(in, what, plan, out)](int64_t from, int64_t to, int64_t n) mutable {
          if (plan.inner_reduced) return reducer.reduce_row(from, to);
          reducer.reduce_columns(from, to, static_cast<size_t>(n));
        };
  });
  return {};
}

int64_t reduced_count(const Tensor& in, const bool* reduced) {
  int64_t count = 1;
  for (size_t d = 0; d < in.rank; ++d) {
    if (reduced[d]) count *= in.sizes[d];
  }
  return count;
}

// Sums and products are computed in the type of the result: integers exactly, and integers with a
// floating result in double.
DType sum_compute(const Tensor& in, const Tensor& out) {
  if (!is_floating(out.dtype)) return DType::Int64;
  const bool narrow = is_floating(in.dtype) && in.dtype != DType::Float64;
  return narrow && out.dtype != DType::Float64 ? DType::Float32 : DType::Float64;
}

Status check_in_out(KernelContext& ctx, const Tensor& in, const Tensor& out) {
  RL_TRY(check_real(ctx, "self", in));
  return check_real(ctx, "out", out);
}

Status mean_over(KernelContext& ctx, const Tensor& in, const bool* reduced, bool keepdim,
                 Tensor& out) {
  RL_TRY(check_in_out(ctx, in, out));
  if (!is_floating(out.dtype)) {
    return ctx.fail(Code::InvalidArgument, "out is %s, but a mean is of a floating type",
                    dtype_name(out.dtype));
  }
  Reduction what;
  what.compute = sum_compute(in, out);
  what.divisor = static_cast<double>(reduced_count(in, reduced));
  return reduce(ctx, in, reduced, keepdim, what, out);
}

Status prod_over(KernelContext& ctx, const Tensor& in, const bool* reduced, bool keepdim,
                 Tensor& out) {
  RL_TRY(check_in_out(ctx, in, out));
  Reduction what;
  what.fold = &reduce_prod();
  what.compute = sum_compute(in, out);
  if (what.floating()) {
    what.init.d = 1.0;
  } else {
    what.init.i = 1;
  }
  return reduce(ctx, in, reduced, keepdim, what, out);
}

// The greatest or the least.
Status extreme_over(KernelContext& ctx, const Tensor& in, const bool* reduced, bool keepdim,
                    bool max, Tensor& out) {
  RL_TRY(check_in_out(ctx, in, out));
  RL_TRY(check_castable(ctx, in.dtype, out));
  if (reduced_count(in, reduced) == 0) {
    return ctx.fail(Code::InvalidArgument,
                    "self has sizes %s: there is no greatest or least of no elements",
                    ShapeText(in.shape()).text());
  }
  Reduction what;
  what.fold = max ? &reduce_max() : &reduce_min();
  what.compute = is_floating(in.dtype) ? compute_dtype(in.dtype) : DType::Int64;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (what.floating()) {
    what.init.d = max ? -kInfinity : kInfinity;
  } else {
    what.init.i = max ? INT64_MIN : INT64_MAX;
  }
  return reduce(ctx, in, reduced, keepdim, what, out);
}

Status any_over(KernelContext& ctx, const Tensor& in, const bool* reduced, bool keepdim,
                Tensor& out) {
  RL_TRY(check_in_out(ctx, in, out));
  Reduction what;
  what.fold = &reduce_max();
  what.compute = DType::Bool;
  return reduce(ctx, in, reduced, keepdim, what, out);
}

Status var_over(KernelContext& ctx, const Tensor& in, const bool* reduced, bool keepdim,
                double correction, Tensor& out, Tensor* mean) {
  RL_TRY(check_in_out(ctx, in, out));
  if (mean != nullptr) RL_TRY(check_real(ctx, "the mean's output", *mean));
  if (!is_floating(in.dtype) || !is_floating(out.dtype)) {
    return ctx.fail(Code::InvalidArgument, "self is %s and out is %s, but both must be floating",
                    dtype_name(in.dtype), dtype_name(out.dtype));
  }
  Reduction what;
  what.compute = compute_dtype(in.dtype);
  what.deviation = &reduce_squared_deviation();
  what.mean_out = mean;
  what.divisor = std::max(0.0, static_cast<double>(reduced_count(in, reduced)) - correction);
  return reduce(ctx, in, reduced, keepdim, what, out);
}

constexpr bool kAll[kMaxRank] = {true, true, true, true, true, true, true, true,
                                 true, true, true, true, true, true, true, true};

}  // namespace

Status sum_over(KernelContext& ctx, const Tensor& in, const bool* reduced, bool keepdim,
                Tensor& out) {
  RL_TRY(check_in_out(ctx, in, out));
  Reduction what;
  what.compute = sum_compute(in, out);
  return reduce(ctx, in, reduced, keepdim, what, out);
}

// sum(self, dim, keepdim, dtype, out), and mean: out has the dtype.
Status sum_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  bool reduced[kMaxRank];
  RL_TRY(wrap_dims(ctx, *args[1], in.rank, true, reduced));
  return sum_over(ctx, in, reduced, args[2]->to_bool(), args[4]->tensor());
}

Status mean_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  bool reduced[kMaxRank];
  RL_TRY(wrap_dims(ctx, *args[1], in.rank, true, reduced));
  return mean_over(ctx, in, reduced, args[2]->to_bool(), args[4]->tensor());
}

// mean(self, dtype, out), prod(self, dtype, out)
Status mean_all_out(KernelContext& ctx, EValue* const* args) {
  return mean_over(ctx, args[0]->tensor(), kAll, false, args[2]->tensor());
}

Status prod_all_out(KernelContext& ctx, EValue* const* args) {
  return prod_over(ctx, args[0]->tensor(), kAll, false, args[2]->tensor());
}

// prod(self, dim, keepdim, dtype, out)
Status prod_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  bool reduced[kMaxRank] = {};
  size_t dim = 0;
  RL_TRY(wrap_dim(ctx, args[1]->to_int(), in.rank, &dim));
  reduced[dim] = true;
  return prod_over(ctx, in, reduced, args[2]->to_bool(), args[4]->tensor());
}

// amax(self, dim, keepdim, out)
Status amax_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  bool reduced[kMaxRank];
  RL_TRY(wrap_dims(ctx, *args[1], in.rank, true, reduced));
  return extreme_over(ctx, in, reduced, args[2]->to_bool(), true, args[3]->tensor());
}

Status amin_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  bool reduced[kMaxRank];
  RL_TRY(wrap_dims(ctx, *args[1], in.rank, true, reduced));
  return extreme_over(ctx, in, reduced, args[2]->to_bool(), false, args[3]->tensor());
}

// max(self, out), min(self, out): over all elements.
Status max_all_out(KernelContext& ctx, EValue* const* args) {
  return extreme_over(ctx, args[0]->tensor(), kAll, false, true, args[1]->tensor());
}

Status min_all_out(KernelContext& ctx, EValue* const* args) {
  return extreme_over(ctx, args[0]->tensor(), kAll, false, false, args[1]->tensor());
}

// any(self, out); any(self, dim, keepdim, out) with one dim or a list
Status any_all_out(KernelContext& ctx, EValue* const* args) {
  return any_over(ctx, args[0]->tensor(), kAll, false, args[1]->tensor());
}

Status any_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  bool reduced[kMaxRank] = {};
  size_t dim = 0;
  RL_TRY(wrap_dim(ctx, args[1]->to_int(), in.rank, &dim));
  reduced[dim] = true;
  return any_over(ctx, in, reduced, args[2]->to_bool(), args[3]->tensor());
}

Status any_dims_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  bool reduced[kMaxRank];
  RL_TRY(wrap_dims(ctx, *args[1], in.rank, false, reduced));
  return any_over(ctx, in, reduced, args[2]->to_bool(), args[3]->tensor());
}

// var(self, dim, unbiased, keepdim, out)
Status var_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  bool reduced[kMaxRank];
  RL_TRY(wrap_dims(ctx, *args[1], in.rank, true, reduced));
  return var_over(ctx, in, reduced, args[3]->to_bool(), args[2]->to_bool() ? 1.0 : 0.0,
                  args[4]->tensor(), nullptr);
}

// var(self, dim, correction, keepdim, out)
Status var_correction_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  bool reduced[kMaxRank];
  RL_TRY(wrap_dims(ctx, *args[1], in.rank, true, reduced));
  return var_over(ctx, in, reduced, args[3]->to_bool(), double_or(*args[2], 1.0), args[4]->tensor(),
                  nullptr);
}

// var_mean(self, dim, correction, keepdim, out0, out1)
Status var_mean_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  bool reduced[kMaxRank];
  RL_TRY(wrap_dims(ctx, *args[1], in.rank, true, reduced));
  return var_over(ctx, in, reduced, args[3]->to_bool(), double_or(*args[2], 1.0), args[4]->tensor(),
                  &args[5]->tensor());
}

}  // namespace rushlight::kernels
