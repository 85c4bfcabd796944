// Running results along one dimension: sums, products, sums of exponentials, maxima and minima.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/element.h"
#include "rushlight/kernels/portable/loops/reduction/reduce.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/reduction/reduce.h"

namespace rushlight::kernels {
namespace {

union Value {
  double d;
  int64_t i;
};

// The loops that update a running result: along a row, or elementwise for a row of results.
struct Fold {
  CumulateFn row;
  CumulateFn column;
  Value start;
};

DType accumulator_of(DType compute) { return is_floating(compute) ? DType::Float64 : DType::Int64; }

struct Product {
  static double join(double a, double b) { return a * b; }
  static int64_t join(int64_t a, int64_t b) {  // wraps around
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};

// log(exp(a) + exp(b))
struct LogSum {
  static double join(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
    const double least = std::min(a, b);
    const double greatest = std::max(a, b);
    if (least == greatest && std::isinf(least)) return least;
    return greatest + std::log1p(std::exp(least - greatest));
  }
};

template <typename Join, typename T, typename A>
void fold_row(const void* in, size_t n, void* running, void* out) {
  const T* x = static_cast<const T*>(in);
  A* y = static_cast<A*>(out);
  A value = *static_cast<A*>(running);
  for (size_t i = 0; i < n; ++i) y[i] = value = Join::join(value, static_cast<A>(x[i]));
  *static_cast<A*>(running) = value;
}

template <typename Join, typename T, typename A>
void fold_column(const void* in, size_t n, void* running, void* out) {
  const T* x = static_cast<const T*>(in);
  A* value = static_cast<A*>(running);
  A* y = static_cast<A*>(out);
  for (size_t i = 0; i < n; ++i) y[i] = value[i] = Join::join(value[i], static_cast<A>(x[i]));
}

template <typename Join, typename T, typename A>
Fold fold_of(A start) {
  Fold fold = {fold_row<Join, T, A>, fold_column<Join, T, A>, {}};
  std::memcpy(&fold.start, &start, sizeof start);
  return fold;
}

Fold sum_fold(DType compute) {
  const CumulateLoops& loops = cumulate_sum();
  const ComputeType index = compute_index(compute);
  return {loops.row[index], loops.column[index], {}};
}

Fold product_fold(DType compute) {
  if (compute == DType::Float32) return fold_of<Product, float, double>(1.0);
  if (compute == DType::Float64) return fold_of<Product, double, double>(1.0);
  return fold_of<Product, int64_t, int64_t>(1);
}

// Running results along one dimension, which is the reduced one in the plan.
class Cumulator {
 public:
  Cumulator(const Tensor& in, DType compute, const Fold& fold, const ReducePlan& plan,
            int64_t out_stride, Tensor& out)
      : reader_(in, compute),
        fold_(fold),
        plan_(plan),
        out_stride_(out_stride),
        out_(out),
        compute_(compute) {}

  void run() {
    Nest kept = plan_.kept;
    kept.rewind();
    do {
      if (plan_.inner_reduced) {
        cumulate_row(kept.offset(), kept.second_offset());
      } else {
        cumulate_columns(kept.offset(), kept.second_offset());
      }
    } while (kept.next());
  }

 private:
  void cumulate_row(int64_t offset, int64_t out_offset) {
    running_[0] = fold_.start;
    for (int64_t done = 0; done < plan_.run;) {
      const size_t n = static_cast<size_t>(std::min<int64_t>(plan_.run - done, kChunk));
      fold_.row(reader_.read(offset + done, n), n, running_, result_);
      write_run(result_, accumulator_of(compute_), n, out_, out_offset + done * out_stride_,
                out_stride_);
      done += static_cast<int64_t>(n);
    }
  }

  void cumulate_columns(int64_t offset, int64_t out_offset) {
    for (int64_t done = 0; done < plan_.run;) {
      const size_t n = static_cast<size_t>(std::min<int64_t>(plan_.run - done, kChunk));
      cumulate_chunk(offset + done, out_offset + done * plan_.run_stride, n);
      done += static_cast<int64_t>(n);
    }
  }

  void cumulate_chunk(int64_t offset, int64_t out_offset, size_t n) {
    std::fill(running_, running_ + n, fold_.start);
    Nest reduced = plan_.reduced;
    reduced.rewind();
    int64_t position = 0;
    do {
      fold_.column(reader_.read(offset + reduced.offset(), n), n, running_, result_);
      write_run(result_, accumulator_of(compute_), n, out_, out_offset + position * out_stride_,
                plan_.run_stride);
      ++position;
    } while (reduced.next());
  }

  RunReader reader_;
  const Fold& fold_;
  const ReducePlan& plan_;
  int64_t out_stride_;
  Tensor& out_;
  Value running_[kChunk];
  Value result_[kChunk];
  DType compute_;
};

// `out` has the dtype. `fold_for` returns the fold for the computing type.
Status cumulate(KernelContext& ctx, const Tensor& in, int64_t dim_argument, Fold (*fold_for)(DType),
                Tensor& out) {
  RL_TRY(check_real(ctx, "self", in));
  RL_TRY(check_real(ctx, "out", out));
  size_t dim = 0;
  RL_TRY(wrap_dim(ctx, dim_argument, in.rank, &dim));
  RL_TRY(ctx.resize_like(out, in));
  if (out.numel == 0) return {};
  bool reduced[kMaxRank] = {};
  reduced[dim] = true;
  const DType compute =
      is_floating(out.dtype) ? compute_dtype(promote(in.dtype, out.dtype)) : DType::Int64;
  const ReducePlan plan = plan_reduction(in, reduced, true, out);
  const Fold fold = fold_for(compute);
  Cumulator(in, compute, fold, plan, in.rank == 0 ? 1 : out.strides[dim], out).run();
  return {};
}

// A line of the input, and two output lines of the same layout.
struct Line {
  const void* in;
  int64_t stride;
  int64_t n;
  void* values;
  int64_t* positions;
  int64_t out_stride;
};

// The running maximum or minimum and its position, the last one of equal elements. After a NaN the
// result stays NaN.
template <typename T, bool kLeast>
void run_extreme(const Line& line) {
  const T* in = static_cast<const T*>(line.in);
  T* values = static_cast<T*>(line.values);
  T best = in[0];
  int64_t position = 0;
  int64_t i = 0;
  const auto take = [&] {
    best = in[i * line.stride];
    position = i;
  };
  const auto write = [&] {
    values[i * line.out_stride] = best;
    line.positions[i * line.out_stride] = position;
  };
  for (; i < line.n && number(best) == number(best); ++i) {
    const auto x = number(in[i * line.stride]);
    if (!(kLeast ? x > number(best) : x < number(best))) take();  // NaN is neither
    write();
  }
  for (; i < line.n; ++i) {
    const auto x = number(in[i * line.stride]);
    if (x != x) take();
    write();
  }
}

using ExtremeFn = void (*)(const Line& line);

template <typename T>
ExtremeFn extreme_of(bool least) {
  return least ? run_extreme<T, true> : run_extreme<T, false>;
}

ExtremeFn extreme_fn(DType dtype, bool least) {
  switch (dtype) {
    case DType::Float32:
      return extreme_of<float>(least);
    case DType::Float64:
      return extreme_of<double>(least);
    case DType::Float16:
      return extreme_of<plain::Half>(least);
    case DType::BFloat16:
      return extreme_of<plain::BFloat>(least);
    case DType::Int64:
      return extreme_of<int64_t>(least);
    case DType::Int32:
      return extreme_of<int32_t>(least);
    case DType::Int16:
      return extreme_of<int16_t>(least);
    case DType::Int8:
      return extreme_of<int8_t>(least);
    case DType::UInt8:
      return extreme_of<uint8_t>(least);
    default:
      return extreme_of<Truth>(least);
  }
}

// cummax(self, dim, *, values, indices)
Status running_extreme(KernelContext& ctx, EValue* const* args, bool least) {
  const Tensor& in = args[0]->tensor();
  Tensor& values = args[2]->tensor();
  Tensor& indices = args[3]->tensor();
  size_t dim = 0;
  RL_TRY(check_real(ctx, "self", in));
  RL_TRY(check_dtype(ctx, "values", values, in.dtype));
  RL_TRY(check_dtype(ctx, "indices", indices, DType::Int64));
  RL_TRY(wrap_dim(ctx, args[1]->to_int(), in.rank, &dim));
  RL_TRY(ctx.resize_like(values, in));
  RL_TRY(ctx.resize_like(indices, in));
  if (in.numel == 0) return {};
  if (!same_layout(values, indices)) {
    return ctx.fail(Code::InvalidArgument, "the two outputs have different orders of dimensions");
  }
  Nest nest;
  for (size_t d = in.rank; d-- > 0;) {
    if (d != dim) nest.add(in.sizes[d], in.strides[d], values.strides[d]);
  }
  const ExtremeFn run = extreme_fn(in.dtype, least);
  Line line = {};
  line.stride = in.rank == 0 ? 1 : in.strides[dim];
  line.n = in.rank == 0 ? 1 : in.sizes[dim];
  line.out_stride = in.rank == 0 ? 1 : values.strides[dim];
  nest.rewind();
  do {
    line.in = element_at(in, nest.offset());
    line.values = element_at(values, nest.second_offset());
    line.positions = indices.as<int64_t>() + nest.second_offset();
    run(line);
  } while (nest.next());
  return {};
}

}  // namespace

// cumsum(self, dim, dtype, out)
Status cumsum_out(KernelContext& ctx, EValue* const* args) {
  return cumulate(ctx, args[0]->tensor(), args[1]->to_int(), sum_fold, args[3]->tensor());
}

// cumprod(self, dim, dtype, out)
Status cumprod_out(KernelContext& ctx, EValue* const* args) {
  return cumulate(ctx, args[0]->tensor(), args[1]->to_int(), product_fold, args[3]->tensor());
}

// logcumsumexp(self, dim, out)
Status logcumsumexp_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[2]->tensor();
  RL_TRY(check_floating(ctx, "out", out));
  const auto fold_for = [](DType compute) {
    constexpr double kNothing = -std::numeric_limits<double>::infinity();
    return compute == DType::Float64 ? fold_of<LogSum, double, double>(kNothing)
                                     : fold_of<LogSum, float, double>(kNothing);
  };
  return cumulate(ctx, args[0]->tensor(), args[1]->to_int(), fold_for, out);
}

Status cummax_out(KernelContext& ctx, EValue* const* args) {
  return running_extreme(ctx, args, false);
}

Status cummin_out(KernelContext& ctx, EValue* const* args) {
  return running_extreme(ctx, args, true);
}

}  // namespace rushlight::kernels
