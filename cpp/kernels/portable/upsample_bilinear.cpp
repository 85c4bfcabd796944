// Bilinear resizing of images.
#include <algorithm>
#include <cmath>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/loops/upsample.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/rows.h"
#include "rushlight/kernels/portable/upsample.h"

namespace rushlight::kernels {
namespace {

// Between which two input positions an output lies, and how far from the first.
struct Between {
  int64_t low;
  int64_t high;
  double part;
};

// Computed in the type T that eager PyTorch computes in, so that the parts agree to the last digit.
template <typename T>
Between between(const UpsampleAxis& axis, bool align_corners, int64_t o) {
  T position = 0;
  if (align_corners) {
    const T scale = axis.out > 1 ? static_cast<T>(axis.in - 1) / static_cast<T>(axis.out - 1) : 0;
    position = scale * static_cast<T>(o);
  } else {
    const T half = static_cast<T>(0.5);
    position = axis.scale<T>() * (static_cast<T>(o) + half) - half;
    if (!(position > 0)) position = 0;
  }
  const int64_t last = axis.in - 1;
  const int64_t low = position < static_cast<T>(last) ? static_cast<int64_t>(position) : last;
  const T part = position - static_cast<T>(low);
  return {low, std::min(low + 1, last), static_cast<double>(std::min<T>(part, 1))};
}

class BilinearUpsampling {
 public:
  BilinearUpsampling(const Upsampling& u, const Tensor& in, const Tensor& out, DType compute,
                     bool align_corners)
      : u_(u),
        compute_(compute),
        type_(static_cast<size_t>(compute_index(compute))),
        align_corners_(align_corners),
        in_(in, compute),
        other_(in, compute),
        out_(out, compute) {}

  void run() {
    if (u_.in_c == 1 && u_.w.in_stride != 1) {
      pixels();
    } else {
      rows();
    }
  }

 private:
  Between place(const UpsampleAxis& axis, int64_t o) const {
    return compute_ == DType::Float64 ? between<double>(axis, align_corners_, o)
                                      : between<float>(axis, align_corners_, o);
  }

  // --- channels innermost: one pixel after the other
  // ----------------------------------------------

  void pixels() {
    for (int64_t h = 0; h < u_.h.out; ++h) {
      const Between y = place(u_.h, h);
      for (int64_t w = 0; w < u_.w.out; ++w) {
        const Between x = place(u_.w, w);
        for (int64_t n = 0; n < u_.n; ++n) {
          const int64_t to = n * u_.out_n + h * u_.h.out_stride + w * u_.w.out_stride;
          pixel(n * u_.in_n, y, x, to);
        }
      }
    }
  }

  void pixel(int64_t from, const Between& y, const Between& x, int64_t to) {
    const int64_t top = from + y.low * u_.h.in_stride;
    const int64_t bottom = from + y.high * u_.h.in_stride;
    const int64_t left = x.low * u_.w.in_stride;
    const int64_t right = x.high * u_.w.in_stride;
    const int64_t offsets[] = {top + left, top + right, bottom + left, bottom + right};
    Neighbours neighbours;
    neighbours.weight[0] = (1.0 - y.part) * (1.0 - x.part);
    neighbours.weight[1] = (1.0 - y.part) * x.part;
    neighbours.weight[2] = y.part * (1.0 - x.part);
    neighbours.weight[3] = y.part * x.part;
    const int64_t most = in_.same_type() ? INT32_MAX : static_cast<int64_t>(kChunk / 4);
    const int64_t out_most =
        static_cast<int64_t>(std::min<size_t>(out_.limit(u_.out_c), INT32_MAX));
    for (int64_t c = 0, count = 0; c < u_.c; c += count) {
      count = std::min({most, out_most, u_.c - c});
      const size_t n = static_cast<size_t>(count);
      for (size_t k = 0; k < 4; ++k) {
        const uint8_t* at = in_.at(offsets[k] + c);
        neighbours.at[k] = at;
        if (in_.same_type()) continue;
        uint64_t* typed = rows_[0] + k * (kChunk / 4);
        in_.convert_to(at, typed, n);
        neighbours.at[k] = typed;
      }
      void* y_out = out_.target(to + c * u_.out_c, u_.out_c);
      upsample_loops().blend_four[type_](neighbours, n, y_out);
      out_.store(to + c * u_.out_c, u_.out_c, n);
    }
  }

  // --- one row after the other
  // --------------------------------------------------------------------

  void rows() {
    for (int64_t begin = 0; begin < u_.w.out; begin += static_cast<int64_t>(kChunk)) {
      const size_t count =
          static_cast<size_t>(std::min(static_cast<int64_t>(kChunk), u_.w.out - begin));
      locate(begin, count);
      for (int64_t n = 0; n < u_.n; ++n) {
        for (int64_t c = 0; c < u_.c; ++c) {
          const int64_t to = n * u_.out_n + c * u_.out_c + begin * u_.w.out_stride;
          plane(n * u_.in_n + c * u_.in_c, to, count);
        }
      }
    }
  }

  void locate(int64_t begin, size_t count) {
    double parts[kChunk];
    for (size_t i = 0; i < count; ++i) {
      const Between x = place(u_.w, begin + static_cast<int64_t>(i));
      left_[i] = static_cast<int32_t>(x.low * u_.w.in_stride);
      right_[i] = static_cast<int32_t>(x.high * u_.w.in_stride);
      parts[i] = x.part;
    }
    convert(parts, DType::Float64, right_weight_, compute_, count);
    for (size_t i = 0; i < count; ++i) parts[i] = 1.0 - parts[i];
    convert(parts, DType::Float64, left_weight_, compute_, count);
  }

  void plane(int64_t from, int64_t to, size_t count) {
    cached_[0] = cached_[1] = -1;
    for (int64_t h = 0; h < u_.h.out; ++h) {
      const Between y = place(u_.h, h);
      const void* top = widened(from, y.low, count);
      const void* bottom = y.high == y.low ? top : widened(from, y.high, count);
      const int64_t there = to + h * u_.h.out_stride;
      void* out = out_.target(there, u_.w.out_stride);
      upsample_loops().blend[type_](top, bottom, 1.0 - y.part, y.part, count, out);
      out_.store(there, u_.w.out_stride, count);
    }
  }

  // Input row `y` at the output's width. The last two are kept: even rows in one buffer, odd ones
  // in the other, so that two neighbours are there at once.
  const void* widened(int64_t from, int64_t y, size_t count) {
    const size_t slot = static_cast<size_t>(y % 2);
    if (cached_[slot] == y) return rows_[slot];
    cached_[slot] = y;
    const int64_t offset = from + y * u_.h.in_stride;
    if (in_.same_type()) {
      upsample_loops().gather_blend[type_](in_.at(offset), left_, right_, left_weight_,
                                           right_weight_, count, rows_[slot]);
    } else {
      const void* a = in_.read_indexed(offset, left_, count);
      const void* b = other_.read_indexed(offset, right_, count);
      upsample_loops().blend_each[type_](a, b, left_weight_, right_weight_, count, rows_[slot]);
    }
    return rows_[slot];
  }

  Upsampling u_;
  DType compute_;
  size_t type_;
  bool align_corners_;
  RowReader in_;
  RowReader other_;
  RowWriter out_;
  int64_t cached_[2] = {-1, -1};
  int32_t left_[kChunk];  // offsets within a row
  int32_t right_[kChunk];
  alignas(64) uint64_t left_weight_[kChunk];  // of the type computed in, as is the rest
  alignas(64) uint64_t right_weight_[kChunk];
  alignas(64) uint64_t rows_[2][kChunk];
};

}  // namespace

// upsample_bilinear2d.vec(input, output_size, align_corners, scale_factors, *, out)
Status upsample_bilinear2d_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[4]->tensor();
  if (!is_floating(in.dtype)) {
    return ctx.fail(Code::NotSupported, "input is %s, but must be floating", dtype_name(in.dtype));
  }
  Upsampling upsampling;
  RL_TRY(read_upsampling(ctx, in, *args[1], *args[3], out, &upsampling));
  if (out.numel == 0) return {};
  if (upsampling.w.in * upsampling.w.in_stride > INT32_MAX) {
    return ctx.fail(Code::NotSupported,
                    "a row of input spans %lld elements; at most 2147483647 are "
                    "supported",
                    static_cast<long long>(upsampling.w.in * upsampling.w.in_stride));
  }
  BilinearUpsampling(upsampling, in, out, compute_dtype(in.dtype), args[2]->to_bool()).run();
  return {};
}

}  // namespace rushlight::kernels
