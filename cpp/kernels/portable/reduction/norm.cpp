#include "rushlight/kernels/portable/reduction/norm.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rushlight/kernels/portable/loops/reduction/norm.h"
#include "rushlight/kernels/portable/loops/reduction/reduce.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/rows.h"
#include "rushlight/kernels/portable/walk.h"

namespace rushlight::kernels {
namespace {

// If channels are innermost, a chunk of channels is processed at once, pixel by pixel. Otherwise
// channels are processed one after the other, along their pixels.
class ChannelNormalizer {
 public:
  explicit ChannelNormalizer(const ChannelNorm& norm)
      : norm_(norm),
        compute_(compute_dtype(norm.in->dtype)),
        type_(static_cast<size_t>(compute_index(compute_))),
        in_(*norm.in, compute_),
        out_(*norm.out, compute_) {
    const Tensor& in = *norm.in;
    channels_ = in.sizes[1];
    group_ = channels_ / norm.groups;
    for (size_t k = in.rank; k-- > 0;) {
      const size_t d = in.dim_order[k];
      if (d == 1 || (d == 0 && norm.per_batch)) continue;
      pixels_.add(in.sizes[d], {in.strides[d], norm.out->strides[d]});
      count_ *= in.sizes[d];
    }
    inner_channels_ = in.strides[1] == 1 && channels_ > 1 && group_ <= static_cast<int64_t>(kChunk);
    run_ = pixels_.take_run(run_strides_);
  }

  // The number of work items: a group or a chunk of channels, for one batch element or for all.
  int64_t items() const { return (norm_.per_batch ? norm_.in->sizes[0] : 1) * pieces(); }

  void run(int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      batch_ = item / pieces();
      const int64_t c = item % pieces() * channels_per_piece();
      const int64_t n = std::min(channels_per_piece(), channels_ - c);
      if (inner_channels_) {
        side_by_side(c, static_cast<size_t>(n));
      } else {
        one_by_one(c, n);
      }
    }
  }

 private:
  int64_t channels_per_piece() const {  // channels
    return inner_channels_ ? static_cast<int64_t>(kChunk) / group_ * group_ : group_;
  }
  int64_t pieces() const { return (channels_ + channels_per_piece() - 1) / channels_per_piece(); }

  int64_t in_offset(int64_t c) const {
    return (norm_.per_batch ? batch_ * norm_.in->strides[0] : 0) + c * norm_.in->strides[1];
  }
  int64_t out_offset(int64_t c) const {
    return (norm_.per_batch ? batch_ * norm_.out->strides[0] : 0) + c * norm_.out->strides[1];
  }

  Affine channel(int64_t c, double mean, double rstd) const {
    const double weight = norm_.weight != nullptr ? load_value(*norm_.weight, c) : 1.0;
    const double bias = norm_.bias != nullptr ? load_value(*norm_.bias, c) : 0.0;
    return centered(mean, rstd * weight, bias, compute_);
  }

  void mix(const Tensor& running, int64_t c, double value) const {
    const double before = load_value(running, c);
    store_value(running, c, norm_.momentum * value + (1.0 - norm_.momentum) * before);
  }

  void running_statistics(int64_t c, double* mean, double* rstd) const {
    *mean = load_value(*norm_.running_mean, c);
    *rstd = 1.0 / std::sqrt(load_value(*norm_.running_var, c) + norm_.eps);
  }

  // `squares` is the sum of squared differences from the mean.
  void store_statistics(int64_t group, double mean, double squares, double rstd) const {
    if (norm_.mixed_mean != nullptr) {
      mix(*norm_.mixed_mean, group, mean);
      mix(*norm_.mixed_var, group, squares / static_cast<double>(group_ * count_ - 1));
    }
    if (norm_.mean_out == nullptr) return;
    const auto place = [&](const Tensor& t) {
      return norm_.per_batch ? batch_ * t.strides[0] + group * t.strides[1]
                             : group * static_cast<int64_t>(t.strides[0]);
    };
    store_value(*norm_.mean_out, place(*norm_.mean_out), mean);
    store_value(*norm_.rstd_out, place(*norm_.rstd_out), rstd);
  }

  // --- one channel after the other --------------------------------------------------------------

  double fold_channels(const ReduceLoops& loops, int64_t first, int64_t n, const double* mean) {
    const ReduceRowFn fold = loops.row[type_];
    const size_t most = in_.limit(run_strides_[0]);
    double sum = 0.0;
    for (int64_t c = first; c < first + n; ++c) {
      do {
        const int64_t from = in_offset(c) + pixels_.offset(0);
        for (size_t done = 0, count = 0; done < static_cast<size_t>(run_); done += count) {
          count = std::min(most, static_cast<size_t>(run_) - done);
          const int64_t here = from + static_cast<int64_t>(done) * run_strides_[0];
          fold(in_.read(here, run_strides_[0], count), count, &sum, mean);
        }
      } while (pixels_.next());
    }
    return sum;
  }

  void one_by_one(int64_t first, int64_t n) {
    double mean = 0.0;
    double rstd = 0.0;
    if (norm_.running_mean != nullptr) {
      running_statistics(first, &mean, &rstd);
    } else {
      mean = fold_channels(reduce_sum(), first, n, nullptr) / static_cast<double>(n * count_);
      const double squares = fold_channels(reduce_squared_deviation(), first, n, &mean);
      rstd = reciprocal_deviation(squares, n * count_, norm_.eps);
      store_statistics(first / group_, mean, squares, rstd);
    }
    const size_t most = std::min(in_.limit(run_strides_[0]), out_.limit(run_strides_[1]));
    for (int64_t c = first; c < first + n; ++c) {
      const Affine affine = channel(c, mean, rstd);
      do {
        for (size_t done = 0, count = 0; done < static_cast<size_t>(run_); done += count) {
          count = std::min(most, static_cast<size_t>(run_) - done);
          const int64_t at = static_cast<int64_t>(done);
          const int64_t from = in_offset(c) + pixels_.offset(0) + at * run_strides_[0];
          const int64_t to = out_offset(c) + pixels_.offset(1) + at * run_strides_[1];
          const void* x = in_.read(from, run_strides_[0], count);
          void* y = out_.target(to, run_strides_[1]);
          norm_loops().row[type_](x, count, affine, nullptr, nullptr, y);
          out_.store(to, run_strides_[1], count);
        }
      } while (pixels_.next());
    }
  }

  // --- adjacent channels ------------------------------------------------------------------------

  void fold_pixels(const ReduceLoops& loops, int64_t first, size_t n, double* acc,
                   const double* mean) {
    const ReduceColumnFn fold = loops.column[type_];
    const int64_t most = together(n);
    std::fill(acc, acc + static_cast<size_t>(most) * n, 0.0);
    do {
      for (int64_t done = 0; done < run_; done += most) {
        const size_t count = static_cast<size_t>(std::min(most, run_ - done)) * n;
        const int64_t from = in_offset(first) + pixels_.offset(0) + done * run_strides_[0];
        fold(in_.read(from, 1, count), count, acc, mean);
      }
    } while (pixels_.next());
    for (size_t i = n; i < static_cast<size_t>(most) * n; ++i) acc[i % n] += acc[i];
  }

  // The number of pixels that are processed at once, because they follow each other in memory.
  int64_t together(size_t n) const {
    const int64_t size = static_cast<int64_t>(n);
    if (run_strides_[0] != size || run_strides_[1] != size || norm_.out->strides[1] != 1) return 1;
    return std::min(static_cast<int64_t>(kChunk) / size, run_);
  }

  // Repeats the values of n channels for each of these pixels.
  void repeat(double* values, size_t n) const {
    for (size_t i = n; i < static_cast<size_t>(together(n)) * n; ++i) values[i] = values[i - n];
  }

  // Sums each group of channels.
  void sum_groups(const double* each, size_t n, double* sums) const {
    const size_t size = static_cast<size_t>(group_);
    for (size_t c = 0; c < n; c += size) {
      double sum = 0.0;
      for (size_t k = 0; k < size; ++k) sum += each[c + k];
      std::fill(sums + c, sums + c + size, sum);
    }
  }

  void compute_statistics(int64_t first, size_t n) {
    double each[kChunk];
    const int64_t elements = group_ * count_;
    fold_pixels(reduce_sum(), first, n, each, nullptr);
    sum_groups(each, n, mean_);
    for (size_t i = 0; i < n; ++i) mean_[i] /= static_cast<double>(elements);
    repeat(mean_, n);
    fold_pixels(reduce_squared_deviation(), first, n, each, mean_);
    sum_groups(each, n, rstd_);
    for (size_t i = 0; i < n; ++i) {
      const double squares = rstd_[i];
      rstd_[i] = reciprocal_deviation(squares, elements, norm_.eps);
      const int64_t c = first + static_cast<int64_t>(i);
      if (c % group_ == 0) store_statistics(c / group_, mean_[i], squares, rstd_[i]);
    }
  }

  void side_by_side(int64_t first, size_t n) {
    if (norm_.running_mean != nullptr) {
      for (size_t i = 0; i < n; ++i) {
        running_statistics(first + static_cast<int64_t>(i), &mean_[i], &rstd_[i]);
      }
    } else {
      compute_statistics(first, n);
    }
    for (size_t i = 0; i < n; ++i) {
      const Affine affine = channel(first + static_cast<int64_t>(i), mean_[i], rstd_[i]);
      mean_[i] = affine.center;
      rstd_[i] = affine.scale;
      shift_[i] = affine.shift;
    }
    const int64_t most = together(n);
    const auto settle = [&](double* values, void* as) {
      repeat(values, n);
      convert(values, DType::Float64, as, compute_, static_cast<size_t>(most) * n);
    };
    settle(mean_, centers_);
    settle(rstd_, scales_);
    settle(shift_, shifts_);
    const int64_t stride = norm_.out->strides[1];
    do {
      for (int64_t done = 0; done < run_; done += most) {
        const size_t count = static_cast<size_t>(std::min(most, run_ - done)) * n;
        const int64_t from = in_offset(first) + pixels_.offset(0) + done * run_strides_[0];
        const int64_t to = out_offset(first) + pixels_.offset(1) + done * run_strides_[1];
        const void* x = in_.read(from, 1, count);
        norm_loops().columns[type_](x, count, centers_, scales_, shifts_, out_.target(to, stride));
        out_.store(to, stride, count);
      }
    } while (pixels_.next());
  }

  const ChannelNorm& norm_;
  DType compute_;
  size_t type_;
  RowReader in_;
  RowWriter out_;
  int64_t channels_ = 0;
  int64_t group_ = 1;  // channels of a group
  int64_t count_ = 1;  // elements of a channel that share statistics
  int64_t batch_ = 0;
  bool inner_channels_ = false;
  Walk<2> pixels_;  // of one channel
  int64_t run_ = 1;
  int64_t run_strides_[2] = {1, 1};
  double mean_[kChunk];
  double rstd_[kChunk];
  double shift_[kChunk];
  alignas(64) uint64_t centers_[kChunk];  // of the computing type, as are the next two
  alignas(64) uint64_t scales_[kChunk];
  alignas(64) uint64_t shifts_[kChunk];
};

}  // namespace

Status check_channels(KernelContext& ctx, const char* name, const Tensor* tensor, int64_t size) {
  if (tensor == nullptr) return {};
  RL_TRY(check_floating(ctx, name, *tensor));
  if (tensor->rank == 1 && tensor->sizes[0] == size) return {};
  return ctx.fail(Code::InvalidArgument, "%s has shape %s, but must have shape (%lld,)", name,
                  ShapeText(tensor->shape()).text(), static_cast<long long>(size));
}

double load_value(const Tensor& tensor, int64_t offset) {
  double value = 0.0;
  const int64_t size = static_cast<int64_t>(element_size(tensor.dtype));
  convert(tensor.as<uint8_t>() + offset * size, tensor.dtype, &value, DType::Float64, 1);
  return value;
}

void store_value(const Tensor& tensor, int64_t offset, double value) {
  const int64_t size = static_cast<int64_t>(element_size(tensor.dtype));
  convert(&value, DType::Float64, tensor.as<uint8_t>() + offset * size, tensor.dtype, 1);
}

void fill_empty_statistics(Tensor& mean, Tensor& rstd) {
  for (int64_t i = 0; i < mean.numel; ++i) store_value(mean, i, 0.0);
  for (int64_t i = 0; i < rstd.numel; ++i) {
    store_value(rstd, i, std::numeric_limits<double>::quiet_NaN());
  }
}

Affine centered(double mean, double scale, double bias, DType compute) {
  const double center =
      compute == DType::Float32 ? static_cast<double>(static_cast<float>(mean)) : mean;
  // Not for infinities, since their difference is NaN.
  const double rest = std::isfinite(center) ? center - mean : 0.0;
  return {center, scale, bias + rest * scale};
}

double reciprocal_deviation(double sum, int64_t count, double eps) {
  return 1.0 / std::sqrt(sum / static_cast<double>(count) + eps);
}

void normalize_channels(KernelContext& ctx, const ChannelNorm& norm) {
  const int64_t items = ChannelNormalizer(norm).items();
  ctx.parallel(items, kGrain * items / norm.in->numel + 1,
               [&](int64_t begin, int64_t end) { ChannelNormalizer(norm).run(begin, end); });
}

}  // namespace rushlight::kernels
