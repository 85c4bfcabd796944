// Layer norm and root-mean-square norm over the last dimensions.
#include <algorithm>
#include <limits>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/loops/reduction/norm.h"
#include "rushlight/kernels/portable/loops/reduction/reduce.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/reduction/norm.h"
#include "rushlight/kernels/portable/rows.h"
#include "rushlight/kernels/portable/walk.h"

namespace rushlight::kernels {
namespace {

struct LayerNormTensors {
  const Tensor* in;
  const Tensor* weight;  // may be nullptr, as may bias
  const Tensor* bias;
  const Tensor* out;
  const Tensor* mean;  // nullptr for the root-mean-square norm, which subtracts nothing
  const Tensor* rstd;
};

class LayerNorm {
 public:
  LayerNorm(const LayerNormTensors& t, size_t axis, DType compute, double eps)
      : t_(t),
        eps_(eps),
        compute_(compute),
        type_(static_cast<size_t>(compute_index(compute))),
        in_(*t.in, compute),
        weight_(t.weight != nullptr ? *t.weight : *t.in, compute),
        bias_(t.bias != nullptr ? *t.bias : *t.in, compute),
        out_(*t.out, compute) {
    for (size_t k = t.in->rank; k-- > 0;) {
      const size_t d = t.in->dim_order[k];
      const int64_t in = t.in->strides[d];
      const int64_t out = t.out->strides[d];
      if (d < axis) {
        const int64_t mean = t.mean != nullptr ? t.mean->strides[d] : 0;
        const int64_t rstd = t.rstd != nullptr ? t.rstd->strides[d] : 0;
        rows_.add(t.in->sizes[d], {in, out, mean, rstd});
        continue;
      }
      const int64_t weight = t.weight != nullptr ? t.weight->strides[d - axis] : in;
      const int64_t bias = t.bias != nullptr ? t.bias->strides[d - axis] : in;
      row_.add(t.in->sizes[d], {in, out, weight, bias});
      count_ *= t.in->sizes[d];
    }
    run_ = static_cast<size_t>(row_.take_run(strides_));
    read_most_ = in_.limit(strides_[kIn]);
    most_ = std::min(read_most_, out_.limit(strides_[kOut]));
    if (t.weight != nullptr) most_ = std::min(most_, weight_.limit(strides_[kWeight]));
    if (t.bias != nullptr) most_ = std::min(most_, bias_.limit(strides_[kBias]));
  }

  int64_t rows() const { return rows_.count(); }

  void run(int64_t begin, int64_t end) {
    rows_.seek(begin);
    if (whole() && t_.weight != nullptr) weight_row_ = weight_.read(0, strides_[kWeight], run_);
    if (whole() && t_.bias != nullptr) bias_row_ = bias_.read(0, strides_[kBias], run_);
    for (int64_t row = begin; row < end; ++row) {
      const bool centers = t_.mean != nullptr;
      const double n = static_cast<double>(count_);
      x_ = whole() ? in_.read(rows_.offset(kIn), strides_[kIn], run_) : nullptr;
      const double mean = centers ? fold(reduce_sum(), nullptr) / n : 0.0;
      const double rstd =
          reciprocal_deviation(fold(reduce_squared_deviation(), &mean), count_, eps_);
      if (centers) {
        store_value(*t_.mean, rows_.offset(2), mean);
        store_value(*t_.rstd, rows_.offset(3), rstd);
      }
      apply(centered(mean, rstd, 0.0, compute_));
      rows_.next();
    }
  }

 private:
  enum { kIn, kOut, kWeight, kBias };

  // True if a row is one run that fits the buffers: then it is read once, as are weight and bias.
  bool whole() const { return row_.count() == 1 && run_ <= most_; }

  double fold(const ReduceLoops& loops, const double* mean) {
    const ReduceRowFn fold = loops.row[type_];
    double sum = 0.0;
    if (x_ != nullptr) {
      fold(x_, run_, &sum, mean);
      return sum;
    }
    do {
      const int64_t from = rows_.offset(kIn) + row_.offset(kIn);
      for (size_t done = 0, n = 0; done < run_; done += n) {
        n = std::min(read_most_, run_ - done);
        fold(in_.read(from + static_cast<int64_t>(done) * strides_[kIn], strides_[kIn], n), n, &sum,
             mean);
      }
    } while (row_.next());
    return sum;
  }

  void apply(const Affine& affine) {
    if (x_ != nullptr) {
      const int64_t to = rows_.offset(kOut);
      void* y = out_.target(to, strides_[kOut]);
      norm_loops().row[type_](x_, run_, affine, weight_row_, bias_row_, y);
      out_.store(to, strides_[kOut], run_);
      return;
    }
    do {
      for (size_t done = 0, n = 0; done < run_; done += n) {
        n = std::min(most_, run_ - done);
        const int64_t at = static_cast<int64_t>(done);
        const auto place = [&](int tensor) {
          return row_.offset(static_cast<size_t>(tensor)) + at * strides_[tensor];
        };
        const int64_t to = rows_.offset(kOut) + place(kOut);
        const void* x = in_.read(rows_.offset(kIn) + place(kIn), strides_[kIn], n);
        const void* weight = nullptr;
        const void* bias = nullptr;
        if (t_.weight != nullptr) weight = weight_.read(place(kWeight), strides_[kWeight], n);
        if (t_.bias != nullptr) bias = bias_.read(place(kBias), strides_[kBias], n);
        norm_loops().row[type_](x, n, affine, weight, bias, out_.target(to, strides_[kOut]));
        out_.store(to, strides_[kOut], n);
      }
    } while (row_.next());
  }

  const LayerNormTensors& t_;
  double eps_;
  DType compute_;
  size_t type_;
  RowReader in_;
  RowReader weight_;
  RowReader bias_;
  RowWriter out_;
  int64_t count_ = 1;
  Walk<4> rows_;  // in, out, mean, rstd
  Walk<4> row_;   // in, out, weight, bias
  size_t run_ = 1;
  int64_t strides_[4] = {1, 1, 1, 1};
  const void* x_ = nullptr;  // the row, if whole()
  const void* weight_row_ = nullptr;
  const void* bias_row_ = nullptr;
  size_t read_most_ = 0;
  size_t most_ = 0;
};

Status check_parameter(KernelContext& ctx, const char* name, const Tensor* tensor,
                       const Shape& wanted) {
  if (tensor == nullptr) return {};
  RL_TRY(check_floating(ctx, name, *tensor));
  bool same = tensor->rank == wanted.rank;
  for (size_t d = 0; same && d < wanted.rank; ++d) same = tensor->sizes[d] == wanted.sizes[d];
  if (same) return {};
  return ctx.fail(Code::InvalidArgument, "%s has shape %s, but normalized_shape is %s", name,
                  ShapeText(tensor->shape()).text(), ShapeText(wanted.span()).text());
}

// Checks that normalized_shape is the last dimensions of `in`.
Status check_normalized(KernelContext& ctx, const Tensor& in, const Shape& shape) {
  bool fits = shape.rank >= 1 && shape.rank <= in.rank;
  for (size_t k = 1; fits && k <= shape.rank; ++k) {
    fits = shape.sizes[shape.rank - k] == in.sizes[in.rank - k];
  }
  if (fits) return {};
  return ctx.fail(
      Code::InvalidArgument,
      "normalized_shape is %s, but must be the last dimensions, one at least, of input, "
      "which has shape %s",
      ShapeText(shape.span()).text(), ShapeText(in.shape()).text());
}

void run(KernelContext& ctx, const LayerNormTensors& tensors, size_t axis, double eps) {
  const DType compute = compute_dtype(tensors.in->dtype);
  const int64_t rows = LayerNorm(tensors, axis, compute, eps).rows();
  ctx.parallel(rows, kGrain * rows / tensors.in->numel + 1, [&](int64_t begin, int64_t end) {
    LayerNorm(tensors, axis, compute, eps).run(begin, end);
  });
}

// Eager's default for eps.
double machine_epsilon(DType dtype) {
  switch (dtype) {
    case DType::Float64:
      return std::numeric_limits<double>::epsilon();
    case DType::Float16:
      return 0x1p-10;
    case DType::BFloat16:
      return 0x1p-7;
    default:
      return static_cast<double>(std::numeric_limits<float>::epsilon());
  }
}

}  // namespace

// rms_norm(input, normalized_shape, weight, eps, *, out)
Status rms_norm_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[4]->tensor();
  LayerNormTensors tensors{};
  tensors.in = &in;
  tensors.weight = args[2]->tensor_or_null();
  tensors.out = &out;
  Shape normalized;
  RL_TRY(check_floating(ctx, "input", in));
  RL_TRY(shape_of_list(ctx, *args[1], &normalized));
  RL_TRY(check_normalized(ctx, in, normalized));
  RL_TRY(check_parameter(ctx, "weight", tensors.weight, normalized));
  RL_TRY(check_same_type(ctx, "input", in, out));
  RL_TRY(ctx.resize_like(out, in));
  if (in.numel == 0) return {};
  run(ctx, tensors, in.rank - normalized.rank, double_or(*args[3], machine_epsilon(in.dtype)));
  return {};
}

// native_layer_norm(input, normalized_shape, weight, bias, eps, *, out0, out1, out2)
Status layer_norm_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[5]->tensor();
  Tensor& mean = args[6]->tensor();
  Tensor& rstd = args[7]->tensor();
  const LayerNormTensors tensors = {
      &in, args[2]->tensor_or_null(), args[3]->tensor_or_null(), &out, &mean, &rstd};
  Shape normalized;
  RL_TRY(check_floating(ctx, "input", in));
  RL_TRY(shape_of_list(ctx, *args[1], &normalized));
  RL_TRY(check_normalized(ctx, in, normalized));
  RL_TRY(check_parameter(ctx, "weight", tensors.weight, normalized));
  RL_TRY(check_parameter(ctx, "bias", tensors.bias, normalized));
  RL_TRY(check_same_type(ctx, "input", in, out));
  RL_TRY(check_floating(ctx, "out1", mean));
  RL_TRY(check_floating(ctx, "out2", rstd));
  const size_t axis = in.rank - normalized.rank;
  Shape kept(in.shape());
  std::fill(kept.sizes + axis, kept.sizes + kept.rank, 1);
  RL_TRY(ctx.resize_like(out, in));
  RL_TRY(ctx.resize(mean, kept.span()));
  RL_TRY(ctx.resize(rstd, kept.span()));
  if (in.numel == 0) {
    fill_empty_statistics(mean, rstd);
    return {};
  }
  run(ctx, tensors, axis, args[4]->to_double());
  return {};
}

}  // namespace rushlight::kernels
