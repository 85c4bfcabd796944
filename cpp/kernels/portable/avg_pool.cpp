// Average pooling, with windows of one size or adaptive ones.
#include <algorithm>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/loops/pool.h"
#include "rushlight/kernels/portable/pool.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/rows.h"
#include "rushlight/kernels/portable/strided_copy.h"

namespace rushlight::kernels {
namespace {

// Where channels are innermost, a window's pixels are added up along them. Elsewhere a window's
// rows are added up first, for all windows of a row of outputs at once, and then their columns.
class AveragePool {
 public:
  // `divisor` is 0 unless it overrides the sizes of the windows.
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

  void run() {
    if (p_.in_c == 1 && p_.in_w != 1) {
      pixels();
    } else {
      rows();
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

  void pixels() {
    int64_t ones[kChunk];
    std::fill(ones, ones + kChunk, 1);
    set_counts(ones, kChunk);
    for (int64_t h = 0; h < p_.h.out; ++h) {
      const PoolWindow rows = p_.h.window(h);
      for (int64_t w = 0; w < p_.w.out; ++w) {
        const PoolWindow columns = p_.w.window(w);
        for (int64_t n = 0; n < p_.n; ++n) {
          const int64_t to = n * p_.out_n + h * p_.out_h + w * p_.out_w;
          for (int64_t c = 0; c < p_.c;) {
            const size_t count = std::min(static_cast<size_t>(p_.c - c), kChunk);
            pixel(n * p_.in_n + c * p_.in_c, to + c * p_.out_c, rows, columns, count);
            c += static_cast<int64_t>(count);
          }
        }
      }
    }
  }

  void pixel(int64_t from, int64_t to, const PoolWindow& rows, const PoolWindow& columns,
             size_t count) {
    std::fill(acc_, acc_ + count, 0);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        const int64_t offset = from + i * p_.in_h + j * p_.in_w;
        add_(in_.read(offset, p_.in_c, count), 1, count, acc_);
      }
    }
    const int64_t factor = divisor_ != 0 ? divisor_ : rows.count * columns.count;
    divide(acc_, factor, count, out_.target(to, p_.out_c));
    out_.store(to, p_.out_c, count);
  }

  void rows() {
    for (int64_t begin = 0; begin < p_.w.out; begin += static_cast<int64_t>(kChunk)) {
      const int64_t end = std::min(begin + static_cast<int64_t>(kChunk), p_.w.out);
      locate(begin, end);
      for (int64_t n = 0; n < p_.n; ++n) {
        for (int64_t c = 0; c < p_.c; ++c) {
          for (int64_t h = 0; h < p_.h.out; ++h) {
            const int64_t to = n * p_.out_n + c * p_.out_c + h * p_.out_h + begin * p_.out_w;
            row(n * p_.in_n + c * p_.in_c, to, p_.h.window(h), static_cast<size_t>(end - begin));
          }
        }
      }
    }
  }

  // The windows of a chunk of a row of outputs.
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
    // One window over whole rows that lie in one run is a single longer row.
    whole_rows_ =
        end - begin == 1 && first_ == 0 && last_ == p_.w.in && p_.in_w == 1 && p_.in_h == p_.w.in;
    set_counts(counts, static_cast<size_t>(end - begin));
  }

  void row(int64_t from, int64_t to, const PoolWindow& rows, size_t count) {
    std::fill(acc_, acc_ + count, 0);
    if (whole_rows_) {
      begin_[0] = 0;
      end_[0] = static_cast<int32_t>((rows.end - rows.begin) * p_.w.in);
      add_columns(from + rows.begin * p_.in_h, {0, 1, 1}, 0, end_[0], count);
    } else {
      add_columns(from, rows, first_, last_, count);
    }
    divide(acc_, divisor_ != 0 ? divisor_ : rows.count, count, out_.target(to, p_.out_w));
    out_.store(to, p_.out_w, count);
  }

  void add_columns(int64_t from, const PoolWindow& rows, int64_t first, int64_t last,
                   size_t count) {
    for (int64_t at = first; at < last; at += static_cast<int64_t>(kChunk)) {
      const int64_t stop = std::min(at + static_cast<int64_t>(kChunk), last);
      const size_t n = static_cast<size_t>(stop - at);
      const int64_t offset = from + at * p_.in_w;
      if (rows.end - rows.begin == 1) {
        const void* x = in_.read(offset + rows.begin * p_.in_h, p_.in_w, n);
        windows_(x, at, stop, begin_, end_, count, acc_);
        continue;
      }
      std::fill(columns_, columns_ + n, 0);
      for (int64_t i = rows.begin; i < rows.end; ++i) {
        add_(in_.read(offset + i * p_.in_h, p_.in_w, n), 1, n, columns_);
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
  int64_t first_ = 0;  // of the columns that windows of a chunk cover
  int64_t last_ = 0;
  int32_t begin_[kChunk];
  int32_t end_[kChunk];
  alignas(64) uint64_t counts_[kChunk];  // of the type computed in, as are the next two
  alignas(64) uint64_t columns_[kChunk];
  alignas(64) uint64_t acc_[kChunk];
};

Status average(KernelContext& ctx, const Tensor& self, Pooling& pooling, const Shape& shape,
               int64_t divisor, Tensor& out) {
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(ctx.resize(out, shape.span()));
  if (out.numel == 0) return {};
  pooling.take_strides(self, out);
  AveragePool(pooling, self, out, compute_dtype(self.dtype), divisor).run();
  return {};
}

}  // namespace

// avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, *,
//            out)
Status avg_pool2d_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  if (!is_floating(self.dtype) && self.dtype != DType::Int64) {
    return ctx.fail(Code::NotSupported, "self is %s, but must be floating or int64",
                    dtype_name(self.dtype));
  }
  Pooling pooling;
  Shape shape;
  RL_TRY(read_pooling(ctx, self, *args[1], *args[2], *args[3], nullptr, args[4]->to_bool(),
                      &pooling, &shape));
  pooling.h.count_padding = pooling.w.count_padding = args[5]->to_bool();
  const int64_t divisor = int_or(*args[6], 0);
  if (divisor == 0 && !args[6]->is_none()) {
    return ctx.fail(Code::InvalidArgument, "divisor_override is 0, but must be another number");
  }
  return average(ctx, self, pooling, shape, divisor, args[7]->tensor());
}

// _adaptive_avg_pool2d(self, output_size, *, out)
Status adaptive_avg_pool2d_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const EValue& size = *args[1];
  if (!is_floating(self.dtype)) {
    return ctx.fail(Code::NotSupported, "self is %s, but must be floating", dtype_name(self.dtype));
  }
  RL_TRY(check_images(ctx, self));
  if (size.size() != 1 && size.size() != 2) {
    return ctx.fail(Code::InvalidArgument, "output_size has %zu entries, but must have one or two",
                    size.size());
  }
  Pooling pooling;
  Shape shape(self.shape());
  PoolAxis* const axes[] = {&pooling.h, &pooling.w};
  for (size_t k = 0; k < 2; ++k) {
    const size_t dim = self.rank - 2 + k;
    const int64_t wanted = size.int_at(size.size() == 1 ? 0 : k);
    if (wanted < 0 || wanted > INT32_MAX) {
      return ctx.fail(Code::InvalidArgument,
                      "output_size is %lld, but must be from 0 to 2147483647",
                      static_cast<long long>(wanted));
    }
    axes[k]->adaptive = true;
    axes[k]->in = self.sizes[dim];
    axes[k]->out = wanted;
    shape.sizes[dim] = static_cast<int32_t>(wanted);
  }
  return average(ctx, self, pooling, shape, 0, args[2]->tensor());
}

}  // namespace rushlight::kernels
