// Average pooling in two and three dimensions, with windows of one size or adaptive ones.
#include <algorithm>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/loops/pooling/pool.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/pooling/pool.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/rows.h"

namespace rushlight::kernels {
namespace {

// If channels are innermost, a window's pixels are added along the channels. Otherwise each row of
// the windows is summed first, for all windows of an output row at once, and then the columns.
class AveragePool {
 public:
  // `divisor` is 0, or a number that replaces the sizes of the windows.
  AveragePool(const Pooling& pooling, const Tensor& in, const Tensor& out, DType compute,
              int64_t divisor)
      : p_(pooling),
        in_(in, compute),
        out_(out, compute),
        compute_(compute),
        divisor_(divisor),
        add_(pool_loops().add[compute_index(compute)]),
        windows_(pool_loops().windows[compute_index(compute)]),
        divide_(pool_loops().divide[compute_index(compute)]) {}

  static bool by_pixels(const Pooling& p) { return p.in_c == 1 && p.in_w != 1; }

  // Computes lines of whole pixels; only if by_pixels().
  void pixels(int64_t begin, int64_t end) {
    int64_t ones[kChunk];
    std::fill(ones, ones + kChunk, 1);
    set_counts(ones, kChunk);
    for (int64_t i = begin; i < end; ++i) {
      const PoolLine line = pixel_line(p_, i);
      const PoolWindow planes = p_.d.window(line.d);
      const PoolWindow rows = p_.h.window(line.h);
      for (int64_t w = 0; w < p_.w.out; ++w) {
        const PoolWindow columns = p_.w.window(w);
        for (int64_t c = 0; c < p_.c;) {
          const size_t count = std::min(static_cast<size_t>(p_.c - c), kChunk);
          pixel(line.from + c * p_.in_c, line.to + w * p_.out_w + c * p_.out_c, planes, rows,
                columns, count);
          c += static_cast<int64_t>(count);
        }
      }
    }
  }

  // Computes lines of single channels.
  void rows(int64_t first_line, int64_t last_line) {
    for (int64_t begin = 0; begin < p_.w.out; begin += static_cast<int64_t>(kChunk)) {
      const int64_t end = std::min(begin + static_cast<int64_t>(kChunk), p_.w.out);
      locate(begin, end);
      for (int64_t i = first_line; i < last_line; ++i) {
        const PoolLine line = channel_line(p_, i);
        row(line.from, line.to + begin * p_.out_w, p_.d.window(line.d), p_.h.window(line.h),
            static_cast<size_t>(end - begin));
      }
    }
  }

 private:
  size_t size() const { return element_size(compute_); }

  void set_counts(const int64_t* counts, size_t n) {
    convert(counts, DType::Int64, counts_, compute_, n);
  }

  void divide(const void* acc, int64_t factor, size_t n, void* out) {
    uint64_t typed = 0;
    convert(&factor, DType::Int64, &typed, compute_, 1);
    divide_(acc, counts_, &typed, n, out);
  }

  void pixel(int64_t from, int64_t to, const PoolWindow& planes, const PoolWindow& rows,
             const PoolWindow& columns, size_t count) {
    std::fill(acc_, acc_ + count, 0);
    for (int64_t z = planes.begin; z < planes.end; ++z) {
      for (int64_t i = rows.begin; i < rows.end; ++i) {
        for (int64_t j = columns.begin; j < columns.end; ++j) {
          const int64_t offset = from + z * p_.in_d + i * p_.in_h + j * p_.in_w;
          add_(in_.read(offset, p_.in_c, count), 1, count, acc_);
        }
      }
    }
    const int64_t factor = divisor_ != 0 ? divisor_ : planes.count * rows.count * columns.count;
    divide(acc_, factor, count, out_.target(to, p_.out_c));
    out_.store(to, p_.out_c, count);
  }

  // Finds the windows of a chunk of an output row.
  void locate(int64_t begin, int64_t end) {
    int64_t counts[kChunk];
    first_ = p_.w.in;
    last_ = 0;
    for (int64_t o = begin; o < end; ++o) {
      const PoolWindow window = p_.w.window(o);
      begin_[o - begin] = static_cast<int32_t>(window.begin);
      end_[o - begin] = static_cast<int32_t>(window.end);
      counts[o - begin] = divisor_ != 0 ? 1 : window.count;
      if (window.begin == window.end) continue;
      first_ = std::min(first_, window.begin);
      last_ = std::max(last_, window.end);
    }
    // A window over whole adjacent rows is read as one longer row.
    whole_rows_ =
        end - begin == 1 && first_ == 0 && last_ == p_.w.in && p_.in_w == 1 && p_.in_h == p_.w.in;
    set_counts(counts, static_cast<size_t>(end - begin));
  }

  void row(int64_t from, int64_t to, const PoolWindow& planes, const PoolWindow& rows,
           size_t count) {
    std::fill(acc_, acc_ + count, 0);
    if (whole_rows_) {
      begin_[0] = 0;
      end_[0] = static_cast<int32_t>((rows.end - rows.begin) * p_.w.in);
      for (int64_t z = planes.begin; z < planes.end; ++z) {
        const int64_t start = from + z * p_.in_d + rows.begin * p_.in_h;
        add_columns(start, {0, 1, 1}, {0, 1, 1}, 0, end_[0], count);
      }
    } else {
      add_columns(from, planes, rows, first_, last_, count);
    }
    const int64_t factor = divisor_ != 0 ? divisor_ : planes.count * rows.count;
    divide(acc_, factor, count, out_.target(to, p_.out_w));
    out_.store(to, p_.out_w, count);
  }

  void add_columns(int64_t from, const PoolWindow& planes, const PoolWindow& rows, int64_t first,
                   int64_t last, size_t count) {
    const bool one_row = planes.end - planes.begin == 1 && rows.end - rows.begin == 1;
    for (int64_t at = first; at < last; at += static_cast<int64_t>(kChunk)) {
      const int64_t stop = std::min(at + static_cast<int64_t>(kChunk), last);
      const size_t n = static_cast<size_t>(stop - at);
      const int64_t offset = from + at * p_.in_w;
      if (one_row) {
        const int64_t row = planes.begin * p_.in_d + rows.begin * p_.in_h;
        windows_(in_.read(offset + row, p_.in_w, n), at, stop, begin_, end_, count, acc_);
        continue;
      }
      std::fill(columns_, columns_ + n, 0);
      for (int64_t z = planes.begin; z < planes.end; ++z) {
        for (int64_t i = rows.begin; i < rows.end; ++i) {
          add_(in_.read(offset + z * p_.in_d + i * p_.in_h, p_.in_w, n), 1, n, columns_);
        }
      }
      windows_(columns_, at, stop, begin_, end_, count, acc_);
    }
  }

  Pooling p_;
  RowReader in_;
  RowWriter out_;
  DType compute_;
  int64_t divisor_;
  PoolAddFn add_;
  PoolWindowsFn windows_;
  PoolDivideFn divide_;
  bool whole_rows_ = false;
  int64_t first_ = 0;  // first of the columns that the windows of a chunk cover
  int64_t last_ = 0;
  int32_t begin_[kChunk];
  int32_t end_[kChunk];
  alignas(64) uint64_t counts_[kChunk];  // of the computing type, as are the next two
  alignas(64) uint64_t columns_[kChunk];
  alignas(64) uint64_t acc_[kChunk];
};

Status average(KernelContext& ctx, const Tensor& self, size_t spatial, Pooling& pooling,
               const Shape& shape, int64_t divisor, Tensor& out) {
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(ctx.resize(out, shape.span()));
  if (out.numel == 0) return {};
  pooling.take_strides(self, out, spatial);
  const DType compute = compute_dtype(self.dtype);
  const auto window = [](const PoolAxis& axis) {
    return axis.adaptive ? axis.in / axis.out + 1 : axis.kernel;
  };
  const int64_t line_work =
      pooling.w.out * window(pooling.w) * window(pooling.h) * window(pooling.d);
  if (AveragePool::by_pixels(pooling)) {
    const int64_t lines = pooling.n * pooling.d.out * pooling.h.out;
    ctx.parallel(lines, pool_grain(line_work * pooling.c), [&](int64_t begin, int64_t end) {
      AveragePool(pooling, self, out, compute, divisor).pixels(begin, end);
    });
  } else {
    ctx.parallel(pooling.lines(), pool_grain(line_work), [&](int64_t begin, int64_t end) {
      AveragePool(pooling, self, out, compute, divisor).rows(begin, end);
    });
  }
  return {};
}

// avg_poolNd(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, *,
//            out)
Status average_windows(KernelContext& ctx, EValue* const* args, size_t spatial) {
  const Tensor& self = args[0]->tensor();
  if (!is_floating(self.dtype) && self.dtype != DType::Int64) {
    return ctx.fail(Code::NotSupported, "self is %s, but must be floating or int64",
                    dtype_name(self.dtype));
  }
  Pooling pooling;
  Shape shape;
  const PoolArguments arguments = {*args[1], *args[2], *args[3], nullptr, args[4]->to_bool()};
  RL_TRY(read_pooling(ctx, self, spatial, arguments, &pooling, &shape));
  for (size_t k = 0; k < spatial; ++k) {
    pooling.axis(k, spatial).count_padding = args[5]->to_bool();
  }
  const int64_t divisor = int_or(*args[6], 0);
  if (divisor == 0 && !args[6]->is_none()) {
    return ctx.fail(Code::InvalidArgument, "divisor_override is 0, but must be another number");
  }
  return average(ctx, self, spatial, pooling, shape, divisor, args[7]->tensor());
}

// _adaptive_avg_poolNd(self, output_size, *, out)
Status average_adaptive(KernelContext& ctx, EValue* const* args, size_t spatial) {
  const Tensor& self = args[0]->tensor();
  if (!is_floating(self.dtype)) {
    return ctx.fail(Code::NotSupported, "self is %s, but must be floating", dtype_name(self.dtype));
  }
  Pooling pooling;
  Shape shape;
  RL_TRY(read_adaptive(ctx, self, spatial, *args[1], &pooling, &shape));
  return average(ctx, self, spatial, pooling, shape, 0, args[2]->tensor());
}

}  // namespace

Status avg_pool2d_out(KernelContext& ctx, EValue* const* args) {
  return average_windows(ctx, args, 2);
}
Status avg_pool3d_out(KernelContext& ctx, EValue* const* args) {
  return average_windows(ctx, args, 3);
}
Status adaptive_avg_pool2d_out(KernelContext& ctx, EValue* const* args) {
  return average_adaptive(ctx, args, 2);
}
Status adaptive_avg_pool3d_out(KernelContext& ctx, EValue* const* args) {
  return average_adaptive(ctx, args, 3);
}

}  // namespace rushlight::kernels
