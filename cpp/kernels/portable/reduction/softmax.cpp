// Softmax and its logarithm along one dimension.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/loops/reduction/reduce.h"
#include "rushlight/kernels/portable/loops/reduction/softmax.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/rows.h"
#include "rushlight/kernels/portable/walk.h"

namespace rushlight::kernels {
namespace {

// If the dimension is the input's innermost one, rows are processed one by one. Otherwise adjacent
// rows are processed together, as columns.
class Softmax {
 public:
  // `log` are the loops of log-softmax, or nullptr for softmax.
  Softmax(const Tensor& in, const Tensor& out, size_t dim, DType compute,
          const LogSoftmaxLoops* log)
      : in_(in, compute),
        out_(out, compute),
        compute_(compute),
        type_(static_cast<size_t>(compute_index(compute))),
        log_(log),
        loops_(softmax_loops()) {
    size_ = in.rank == 0 ? 1 : in.sizes[dim];
    in_stride_ = in.rank == 0 ? 1 : in.strides[dim];
    out_stride_ = in.rank == 0 ? 1 : out.strides[dim];
    bool inner_first = true;
    for (size_t k = in.rank; k-- > 0;) {
      const size_t d = in.dim_order[k];
      if (in.sizes[d] == 1) continue;
      if (d == dim) {
        rows_ = inner_first;
      } else {
        walk_.add(in.sizes[d], {in.strides[d], out.strides[d]});
      }
      inner_first = false;
    }
    if (!rows_) run_ = walk_.take_run(run_strides_);
  }

  // The number of work items: rows, or chunks of columns.
  int64_t items() const { return walk_.count() * pieces(); }
  int64_t item_size() const { return size_ * std::min(run_, kColumns); }

  void run(int64_t begin, int64_t end) {
    walk_.seek(begin / pieces());
    for (int64_t item = begin, piece = begin % pieces(); item < end; ++item) {
      if (rows_) {
        row(walk_.offset(0), walk_.offset(1));
      } else {
        const int64_t done = piece * kColumns;
        const size_t n = static_cast<size_t>(std::min(run_ - done, kColumns));
        chunk(walk_.offset(0) + done * run_strides_[0], walk_.offset(1) + done * run_strides_[1],
              n);
      }
      if (++piece == pieces()) {
        piece = 0;
        walk_.next();
      }
    }
  }

 private:
  static constexpr int64_t kColumns = static_cast<int64_t>(kChunk);

  int64_t pieces() const { return rows_ ? 1 : (run_ + kColumns - 1) / kColumns; }

  void row(int64_t from, int64_t to) {
    const size_t n = static_cast<size_t>(size_);
    const size_t most = std::min(in_.limit(1), out_.limit(out_stride_));
    if (n <= most) {
      whole_row(in_.read(from, 1, n), to, n);
    } else {
      pieces(from, to, n, most);
    }
  }

  double max_of(const void* x, size_t n, double max) const {
    reduce_max().row[type_](x, n, &max, nullptr);
    return max;
  }

  void whole_row(const void* x, int64_t to, size_t n) {
    void* y = out_.target(to, out_stride_);
    const double max = max_of(x, n, -std::numeric_limits<double>::infinity());
    if (log_ != nullptr) {
      log_->subtract[type_](x, n, max, std::log(loops_.sum_exp[type_](x, n, max, nullptr)), y);
    } else {
      loops_.scale[type_](y, n, 1.0 / loops_.sum_exp[type_](x, n, max, y));
    }
    out_.store(to, out_stride_, n);
  }

  // A row that does not fit the buffers is read three times: for the maximum, for the sum, and for
  // the result.
  void pieces(int64_t from, int64_t to, size_t n, size_t most) {
    double max = -std::numeric_limits<double>::infinity();
    double sum = 0.0;
    for (size_t done = 0; done < n; done += most) {
      const size_t count = std::min(most, n - done);
      max = max_of(in_.read(from + static_cast<int64_t>(done), 1, count), count, max);
    }
    for (size_t done = 0; done < n; done += most) {
      const size_t count = std::min(most, n - done);
      const void* x = in_.read(from + static_cast<int64_t>(done), 1, count);
      sum += loops_.sum_exp[type_](x, count, max, nullptr);
    }
    for (size_t done = 0; done < n; done += most) {
      const size_t count = std::min(most, n - done);
      const void* x = in_.read(from + static_cast<int64_t>(done), 1, count);
      const int64_t there = to + static_cast<int64_t>(done) * out_stride_;
      void* y = out_.target(there, out_stride_);
      if (log_ != nullptr) {
        log_->subtract[type_](x, count, max, std::log(sum), y);
      } else {
        loops_.exp_scale[type_](x, count, max, 1.0 / sum, y);
      }
      out_.store(there, out_stride_, count);
    }
  }

  const void* read(int64_t from, int64_t position, size_t n) {
    return in_.read(from + position * in_stride_, run_strides_[0], n);
  }

  void chunk(int64_t from, int64_t to, size_t n) {
    std::fill(sum_, sum_ + n, 0);
    std::memcpy(max_, read(from, 0, n), n * element_size(compute_));
    for (int64_t i = 1; i < size_; ++i) loops_.max_columns[type_](read(from, i, n), n, max_);
    for (int64_t i = 0; i < size_; ++i) loops_.sum_columns[type_](read(from, i, n), n, max_, sum_);
    (log_ != nullptr ? log_->log : loops_.invert)[type_](sum_, n);
    const auto finish =
        log_ != nullptr ? log_->subtract_columns[type_] : loops_.exp_scale_columns[type_];
    for (int64_t i = 0; i < size_; ++i) {
      const int64_t there = to + i * out_stride_;
      finish(read(from, i, n), n, max_, sum_, out_.target(there, run_strides_[1]));
      out_.store(there, run_strides_[1], n);
    }
  }

  RowReader in_;
  RowWriter out_;
  DType compute_;
  size_t type_;
  const LogSoftmaxLoops* log_;
  const SoftmaxLoops& loops_;
  bool rows_ = true;
  int64_t size_ = 1;  // size of the dimension
  int64_t in_stride_ = 1;
  int64_t out_stride_ = 1;
  Walk<2> walk_;  // over the other dimensions
  int64_t run_ = 1;
  int64_t run_strides_[2] = {1, 1};
  alignas(64) uint64_t max_[kChunk];  // of the computing type, as is the next
  alignas(64) uint64_t sum_[kChunk];
};

// (self, dim, half_to_float, *, out)
Status softmax(KernelContext& ctx, EValue* const* args, const LogSoftmaxLoops* log) {
  const Tensor& self = args[0]->tensor();
  Tensor& out = args[3]->tensor();
  size_t dim = 0;
  if (!is_floating(self.dtype)) {
    return ctx.fail(Code::NotSupported, "self is %s, but must be floating", dtype_name(self.dtype));
  }
  if (args[2]->to_bool()) {
    return ctx.fail(Code::NotSupported, "half_to_float is true, but only false is supported");
  }
  RL_TRY(check_dtype(ctx, "out", out, self.dtype));
  RL_TRY(wrap_dim(ctx, args[1]->to_int(), self.rank, &dim));
  RL_TRY(ctx.resize_like(out, self));
  if (out.numel == 0) return {};
  const Softmax whole(self, out, dim, compute_dtype(self.dtype), log);
  ctx.parallel(whole.items(), kGrain / whole.item_size() + 1, [&](int64_t begin, int64_t end) {
    Softmax(self, out, dim, compute_dtype(self.dtype), log).run(begin, end);
  });
  return {};
}

}  // namespace

Status softmax_out(KernelContext& ctx, EValue* const* args) { return softmax(ctx, args, nullptr); }

Status log_softmax_out(KernelContext& ctx, EValue* const* args) {
  return softmax(ctx, args, &log_softmax_loops());
}

}  // namespace rushlight::kernels
