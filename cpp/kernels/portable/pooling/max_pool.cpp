// Max pooling in two and three dimensions, with the positions of the maxima, for windows of one
// size or adaptive ones.
#include <algorithm>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/loops/pooling/pool.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/pooling/pool.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/rows.h"

namespace rushlight::kernels {
namespace {

// Wider kernels, and shorter rows, are pooled pixel by pixel.
constexpr int64_t kRowTaps = 32;
constexpr int64_t kShortestRow = 8;

// Folds taps one after the other into a run of outputs, either along the channels of one pixel or
// along a row of one channel. Windows that are wide or of different sizes are folded one input row
// at a time. The first of several equal maxima is chosen, so the taps of a window are visited in
// reading order.
class MaxPool {
 public:
  enum class Way { Pixels, Rows, Windows };

  static Way way(const Pooling& p) {
    if (p.in_c == 1 && p.in_w != 1) return Way::Pixels;
    const bool adaptive = p.d.adaptive || p.h.adaptive || p.w.adaptive;
    const bool wide = p.w.kernel > std::min(p.w.in, kRowTaps);
    if (p.w.dilation == 1 && (adaptive || wide)) return Way::Windows;
    const bool short_row = p.w.out < kShortestRow && p.c > p.w.out;
    return short_row || wide ? Way::Pixels : Way::Rows;
  }

  MaxPool(const Pooling& pooling, const Tensor& in, const Tensor& out, const Tensor& indices,
          DType compute)
      : p_(pooling),
        in_(in, compute),
        out_(out, compute),
        indices_(indices, DType::Int32),
        max_(pool_loops().max[compute_index(compute)]),
        max_windows_(pool_loops().max_windows[compute_index(compute)]),
        start_(pool_loops().start[compute_index(compute)]) {}

  // Computes lines of whole pixels.
  void pixels(int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const PoolLine line = pixel_line(p_, i);
      for (int64_t w = 0; w < p_.w.out; ++w) {
        for (int64_t c = 0; c < p_.c;) {
          const size_t count = std::min(static_cast<size_t>(p_.c - c), kChunk);
          pixel(line, c, w, count);
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
        row(channel_line(p_, i), begin, static_cast<size_t>(end - begin), Way::Rows);
      }
    }
  }

  // Computes lines of single channels, window by window.
  void windows(int64_t first_line, int64_t last_line) {
    for (int64_t begin = 0; begin < p_.w.out; begin += static_cast<int64_t>(kChunk)) {
      const int64_t end = std::min(begin + static_cast<int64_t>(kChunk), p_.w.out);
      for (int64_t o = begin; o < end; ++o) {
        const PoolTaps taps = p_.w.taps(o);
        first_[o - begin] = static_cast<int32_t>(taps.begin);
        last_[o - begin] = static_cast<int32_t>(taps.end);
      }
      for (int64_t i = first_line; i < last_line; ++i) {
        row(channel_line(p_, i), begin, static_cast<size_t>(end - begin), Way::Windows);
      }
    }
  }

 private:
  // The outputs of a chunk for which one tap of a row reads the input.
  struct Tap {
    int64_t lo;
    int64_t hi;
    int64_t at;  // input column that the tap reads for output lo
  };

  int32_t position(int64_t d, int64_t h, int64_t w) const {
    return static_cast<int32_t>((d * p_.h.in + h) * p_.w.in + w);
  }

  void pixel(const PoolLine& line, int64_t c, int64_t w, size_t count) {
    const int64_t from = line.from + c * p_.in_c;
    const int64_t to = line.to + w * p_.out_w + c * p_.out_c;
    void* best = out_.target(to, p_.out_c);
    int32_t* index = static_cast<int32_t*>(indices_.target(to, p_.out_c));
    const PoolTaps planes = p_.d.taps(line.d);
    const PoolTaps rows = p_.h.taps(line.h);
    const PoolTaps columns = p_.w.taps(w);
    start_(best, count);
    std::fill(index, index + count, position(planes.begin, rows.begin, columns.begin));
    for (int64_t z = planes.begin; z < planes.end; z += planes.spacing) {
      for (int64_t i = rows.begin; i < rows.end; i += rows.spacing) {
        for (int64_t j = columns.begin; j < columns.end; j += columns.spacing) {
          fold(from + z * p_.in_d + i * p_.in_h + j * p_.in_w, p_.in_c, count, position(z, i, j), 0,
               best, index);
        }
      }
    }
    out_.store(to, p_.out_c, count);
    indices_.store(to, p_.out_c, count);
  }

  void locate(int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      first_[o - begin] = static_cast<int32_t>(p_.w.taps(o).begin);
    }
    for (int64_t k = 0; k < p_.w.kernel; ++k) {
      Tap& tap = taps_[k];
      p_.w.outputs_inside(k, &tap.lo, &tap.hi);
      tap.lo = std::max(tap.lo, begin);
      tap.hi = std::min(tap.hi, end);
      tap.at = p_.w.start(tap.lo) + k * p_.w.dilation;
    }
  }

  void row(const PoolLine& line, int64_t begin, size_t count, Way way) {
    const int64_t to = line.to + begin * p_.out_w;
    void* best = out_.target(to, p_.out_w);
    int32_t* index = static_cast<int32_t*>(indices_.target(to, p_.out_w));
    const PoolTaps planes = p_.d.taps(line.d);
    const PoolTaps rows = p_.h.taps(line.h);
    const int32_t row_start = position(planes.begin, rows.begin, 0);
    start_(best, count);
    for (size_t i = 0; i < count; ++i) index[i] = row_start + first_[i];
    for (int64_t z = planes.begin; z < planes.end; z += planes.spacing) {
      for (int64_t i = rows.begin; i < rows.end; i += rows.spacing) {
        const int64_t from = line.from + z * p_.in_d + i * p_.in_h;
        if (way == Way::Rows) {
          fold_row(from, position(z, i, 0), begin, best, index);
        } else {
          fold_windows(from, position(z, i, 0), count, best, index);
        }
      }
    }
    out_.store(to, p_.out_w, count);
    indices_.store(to, p_.out_w, count);
  }

  // Folds one input row, piece by piece, into `count` windows.
  void fold_windows(int64_t from, int32_t row_start, size_t count, void* best, int32_t* index) {
    const int64_t last = last_[count - 1];
    for (int64_t at = first_[0]; at < last; at += static_cast<int64_t>(kChunk)) {
      const int64_t stop = std::min(at + static_cast<int64_t>(kChunk), last);
      const void* x = in_.read(from + at * p_.in_w, p_.in_w, static_cast<size_t>(stop - at));
      max_windows_(x, at, stop, first_, last_, count, row_start, best, index);
    }
  }

  // Folds the taps of one input row into the outputs from `begin` on.
  void fold_row(int64_t from, int32_t row_start, int64_t begin, void* best, int32_t* index) {
    const int64_t size = static_cast<int64_t>(out_.computed_size());
    for (int64_t k = 0; k < p_.w.kernel; ++k) {
      const Tap& tap = taps_[k];
      if (tap.lo >= tap.hi) continue;
      const int64_t skip = tap.lo - begin;
      fold(from + tap.at * p_.in_w, p_.w.stride * p_.in_w, static_cast<size_t>(tap.hi - tap.lo),
           row_start + static_cast<int32_t>(tap.at), static_cast<int32_t>(p_.w.stride),
           static_cast<uint8_t*>(best) + skip * size, index + skip);
    }
  }

  void fold(int64_t offset, int64_t stride, size_t n, int32_t at, int32_t at_stride, void* best,
            int32_t* index) {
    if (in_.same_type()) return max_(in_.at(offset), stride, n, at, at_stride, best, index);
    max_(in_.read(offset, stride, n), 1, n, at, at_stride, best, index);
  }

  Pooling p_;
  RowReader in_;
  RowWriter out_;
  RowWriter indices_;
  PoolMaxFn max_;
  PoolMaxWindowsFn max_windows_;
  PoolStartFn start_;
  int32_t first_[kChunk];  // start and end of each window
  int32_t last_[kChunk];
  Tap taps_[kRowTaps];
};

// Checks the types of the outputs, resizes them, and computes all lines.
Status pool(KernelContext& ctx, const Tensor& self, size_t spatial, Pooling& pooling,
            const Shape& shape, Tensor& out, Tensor& indices) {
  RL_TRY(ctx.resize(out, shape.span()));
  RL_TRY(ctx.resize(indices, shape.span()));
  if (out.numel == 0) return {};
  pooling.take_strides(self, out, spatial);
  const DType compute = is_floating(self.dtype) ? compute_dtype(self.dtype) : DType::Int64;
  const auto taps = [](const PoolAxis& axis) {
    return axis.adaptive ? axis.in / axis.out + 1 : axis.kernel;
  };
  const int64_t line_work = pooling.w.out * taps(pooling.w) * taps(pooling.h) * taps(pooling.d);
  const MaxPool::Way way = MaxPool::way(pooling);
  const bool pixels = way == MaxPool::Way::Pixels;
  const int64_t lines = pixels ? pooling.n * pooling.d.out * pooling.h.out : pooling.lines();
  const int64_t grain = pool_grain(pixels ? line_work * pooling.c : line_work);
  ctx.parallel(lines, grain, [&](int64_t begin, int64_t end) {
    MaxPool run(pooling, self, out, indices, compute);
    if (pixels) return run.pixels(begin, end);
    way == MaxPool::Way::Rows ? run.rows(begin, end) : run.windows(begin, end);
  });
  return {};
}

// max_poolNd_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode, *, out, indices)
Status pool_windows(KernelContext& ctx, EValue* const* args, size_t spatial) {
  const Tensor& self = args[0]->tensor();
  Tensor& out = args[6]->tensor();
  Tensor& indices = args[7]->tensor();
  if (!is_real(self.dtype) || self.dtype == DType::Bool) {
    return ctx.fail(Code::NotSupported, "self is %s, but must be of a real number type",
                    dtype_name(self.dtype));
  }
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(check_dtype(ctx, "indices", indices, DType::Int64));
  Pooling pooling;
  Shape shape;
  const PoolArguments arguments = {*args[1], *args[2], *args[3], args[4], args[5]->to_bool()};
  RL_TRY(read_pooling(ctx, self, spatial, arguments, &pooling, &shape));
  return pool(ctx, self, spatial, pooling, shape, out, indices);
}

// adaptive_max_poolNd(self, output_size, *, out, indices)
Status pool_adaptive(KernelContext& ctx, EValue* const* args, size_t spatial) {
  const Tensor& self = args[0]->tensor();
  Tensor& out = args[2]->tensor();
  Tensor& indices = args[3]->tensor();
  if (!is_floating(self.dtype)) {
    return ctx.fail(Code::NotSupported, "self is %s, but must be floating", dtype_name(self.dtype));
  }
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(check_dtype(ctx, "indices", indices, DType::Int64));
  Pooling pooling;
  Shape shape;
  RL_TRY(read_adaptive(ctx, self, spatial, *args[1], &pooling, &shape));
  return pool(ctx, self, spatial, pooling, shape, out, indices);
}

}  // namespace

Status max_pool2d_with_indices_out(KernelContext& ctx, EValue* const* args) {
  return pool_windows(ctx, args, 2);
}
Status max_pool3d_with_indices_out(KernelContext& ctx, EValue* const* args) {
  return pool_windows(ctx, args, 3);
}
Status adaptive_max_pool2d_out(KernelContext& ctx, EValue* const* args) {
  return pool_adaptive(ctx, args, 2);
}
Status adaptive_max_pool3d_out(KernelContext& ctx, EValue* const* args) {
  return pool_adaptive(ctx, args, 3);
}

}  // namespace rushlight::kernels
