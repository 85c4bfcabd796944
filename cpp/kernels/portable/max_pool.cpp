// Max pooling with the positions of the maxima.
#include <algorithm>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/loops/pool.h"
#include "rushlight/kernels/portable/pool.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/rows.h"
#include "rushlight/kernels/portable/strided_copy.h"

namespace rushlight::kernels {
namespace {

// Wider kernels, and rows shorter than this, are pooled pixel by pixel.
constexpr int64_t kRowTaps = 32;
constexpr int64_t kShortestRow = 8;

// Taps are folded one after the other into a run of outputs: along the channels of one pixel, or
// along a row of one channel. Which tap comes first decides between equal maxima, so taps go
// through a window in reading order.
class MaxPool {
 public:
  MaxPool(const Pooling& pooling, const Tensor& in, const Tensor& out, const Tensor& indices,
          DType compute)
      : p_(pooling),
        in_(in, compute),
        out_(out, compute),
        indices_(indices, DType::Int32),
        max_(pool_loops().max[compute_index(compute)]),
        start_(pool_loops().start[compute_index(compute)]) {}

  void run() {
    const bool short_row = p_.w.out < kShortestRow && p_.c > p_.w.out;
    if (p_.in_c == 1 || short_row || p_.w.kernel > std::min(p_.w.in, kRowTaps)) {
      pixels();
    } else {
      rows();
    }
  }

 private:
  // The outputs of a chunk that one tap of a row meets.
  struct Tap {
    int64_t lo;
    int64_t hi;
    int64_t at;  // input column that it meets at output lo
  };

  int64_t end_of(const PoolAxis& axis, int64_t o) const {
    return std::min(axis.start(o) + (axis.kernel - 1) * axis.dilation + 1, axis.in);
  }
  int32_t position(int64_t h, int64_t w) const { return static_cast<int32_t>(h * p_.w.in + w); }

  void pixels() {
    for (int64_t n = 0; n < p_.n; ++n) {
      for (int64_t h = 0; h < p_.h.out; ++h) {
        for (int64_t w = 0; w < p_.w.out; ++w) {
          const int64_t to = n * p_.out_n + h * p_.out_h + w * p_.out_w;
          for (int64_t c = 0; c < p_.c;) {
            const size_t count = std::min(static_cast<size_t>(p_.c - c), kChunk);
            pixel(n * p_.in_n + c * p_.in_c, to + c * p_.out_c, h, w, count);
            c += static_cast<int64_t>(count);
          }
        }
      }
    }
  }

  void pixel(int64_t from, int64_t to, int64_t h, int64_t w, size_t count) {
    void* best = out_.target(to, p_.out_c);
    int32_t* index = static_cast<int32_t*>(indices_.target(to, p_.out_c));
    const int64_t h_begin = p_.h.first_inside(h);
    const int64_t w_begin = p_.w.first_inside(w);
    start_(best, count);
    std::fill(index, index + count, position(h_begin, w_begin));
    for (int64_t i = h_begin; i < end_of(p_.h, h); i += p_.h.dilation) {
      for (int64_t j = w_begin; j < end_of(p_.w, w); j += p_.w.dilation) {
        fold(from + i * p_.in_h + j * p_.in_w, p_.in_c, count, position(i, j), 0, best, index);
      }
    }
    out_.store(to, p_.out_c, count);
    indices_.store(to, p_.out_c, count);
  }

  void rows() {
    for (int64_t begin = 0; begin < p_.w.out; begin += static_cast<int64_t>(kChunk)) {
      const int64_t end = std::min(begin + static_cast<int64_t>(kChunk), p_.w.out);
      locate(begin, end);
      for (int64_t n = 0; n < p_.n; ++n) {
        for (int64_t c = 0; c < p_.c; ++c) {
          for (int64_t h = 0; h < p_.h.out; ++h) {
            const int64_t to = n * p_.out_n + c * p_.out_c + h * p_.out_h + begin * p_.out_w;
            row(n * p_.in_n + c * p_.in_c, to, h, begin, static_cast<size_t>(end - begin));
          }
        }
      }
    }
  }

  void locate(int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      first_[o - begin] = static_cast<int32_t>(p_.w.first_inside(o));
    }
    for (int64_t k = 0; k < p_.w.kernel; ++k) {
      Tap& tap = taps_[k];
      p_.w.outputs_inside(k, &tap.lo, &tap.hi);
      tap.lo = std::max(tap.lo, begin);
      tap.hi = std::min(tap.hi, end);
      tap.at = p_.w.start(tap.lo) + k * p_.w.dilation;
    }
  }

  void row(int64_t from, int64_t to, int64_t h, int64_t begin, size_t count) {
    uint8_t* best = static_cast<uint8_t*>(out_.target(to, p_.out_w));
    int32_t* index = static_cast<int32_t*>(indices_.target(to, p_.out_w));
    const int64_t size = static_cast<int64_t>(out_.computed_size());
    const int64_t h_begin = p_.h.first_inside(h);
    const int32_t row_start = position(h_begin, 0);
    start_(best, count);
    for (size_t i = 0; i < count; ++i) index[i] = row_start + first_[i];
    for (int64_t i = h_begin; i < end_of(p_.h, h); i += p_.h.dilation) {
      for (int64_t k = 0; k < p_.w.kernel; ++k) {
        const Tap& tap = taps_[k];
        if (tap.lo >= tap.hi) continue;
        const int64_t skip = tap.lo - begin;
        fold(from + i * p_.in_h + tap.at * p_.in_w, p_.w.stride * p_.in_w,
             static_cast<size_t>(tap.hi - tap.lo), position(i, tap.at),
             static_cast<int32_t>(p_.w.stride), best + skip * size, index + skip);
      }
    }
    out_.store(to, p_.out_w, count);
    indices_.store(to, p_.out_w, count);
  }

  void fold(int64_t offset, int64_t stride, size_t n, int32_t at, int32_t at_step, void* best,
            int32_t* index) {
    if (in_.same_type()) return max_(in_.at(offset), stride, n, at, at_step, best, index);
    max_(in_.read(offset, stride, n), 1, n, at, at_step, best, index);
  }

  Pooling p_;
  RowReader in_;
  RowWriter out_;
  RowWriter indices_;
  PoolMaxFn max_;
  PoolStartFn start_;
  int32_t first_[kChunk];
  Tap taps_[kRowTaps];
};

}  // namespace

// max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode, *, out, indices)
Status max_pool2d_with_indices_out(KernelContext& ctx, EValue* const* args) {
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
  RL_TRY(read_pooling(ctx, self, *args[1], *args[2], *args[3], args[4], args[5]->to_bool(),
                      &pooling, &shape));
  RL_TRY(ctx.resize(out, shape.span()));
  RL_TRY(ctx.resize(indices, shape.span()));
  if (out.numel == 0) return {};
  pooling.take_strides(self, out);
  const DType compute = is_floating(self.dtype) ? compute_dtype(self.dtype) : DType::Int64;
  MaxPool(pooling, self, out, indices, compute).run();
  return {};
}

}  // namespace rushlight::kernels
