// Linear resizing along one, two or three axes.
#include <algorithm>
#include <cstring>

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
  T position = axis.position<T>(align_corners, o);
  if (!(position > 0)) position = 0;
  const int64_t last = axis.in - 1;
  const int64_t low = position < static_cast<T>(last) ? static_cast<int64_t>(position) : last;
  const T part = position - static_cast<T>(low);
  return {low, std::min(low + 1, last), static_cast<double>(std::min<T>(part, 1))};
}

bool is_absent(const UpsampleAxis& axis) { return axis.in == 1 && axis.out == 1; }

class LinearUpsampling {
 public:
  LinearUpsampling(const Upsampling& u, const Tensor& in, const Tensor& out, DType compute,
                   bool align_corners)
      : u_(u),
        compute_(compute),
        type_(static_cast<size_t>(compute_index(compute))),
        align_corners_(align_corners),
        in_(in, compute),
        other_(in, compute),
        out_(out, compute) {}

  // Channels of a two-dimensional image lie together.
  static bool by_pixels(const Upsampling& u) {
    return u.in_c == 1 && u.w.in_stride != 1 && is_absent(u.d) && !is_absent(u.h);
  }

  // Rows begin..end - 1 of all images, channels innermost: one pixel after the other.
  void pixels(int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t h = line % u_.h.out;
      const int64_t n = line / u_.h.out;
      const Between y = place(u_.h, h);
      for (int64_t w = 0; w < u_.w.out; ++w) {
        const int64_t to = n * u_.out_n + h * u_.h.out_stride + w * u_.w.out_stride;
        pixel(n * u_.in_n, y, place(u_.w, w), to);
      }
    }
  }

  // Planes first..last - 1, one row after the other.
  void planes(int64_t first, int64_t last) {
    for (int64_t begin = 0; begin < u_.w.out; begin += static_cast<int64_t>(kChunk)) {
      const size_t count =
          static_cast<size_t>(std::min(static_cast<int64_t>(kChunk), u_.w.out - begin));
      locate(begin, count);
      for (int64_t plane = first; plane < last; ++plane) {
        volume(u_.in_plane(plane), u_.out_plane(plane) + begin * u_.w.out_stride, count);
      }
    }
  }

 private:
  Between place(const UpsampleAxis& axis, int64_t o) const {
    return compute_ == DType::Float64 ? between<double>(axis, align_corners_, o)
                                      : between<float>(axis, align_corners_, o);
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

  void volume(int64_t from, int64_t to, size_t count) {
    std::fill_n(cached_, 4, -1);
    for (int64_t d = 0; d < u_.d.out; ++d) {
      const Between z = place(u_.d, d);
      for (int64_t h = 0; h < u_.h.out; ++h) {
        const int64_t there = to + d * u_.d.out_stride + h * u_.h.out_stride;
        void* out = out_.target(there, u_.w.out_stride);
        row(from, z, place(u_.h, h), count, out);
        out_.store(there, u_.w.out_stride, count);
      }
    }
  }

  // Between four rows, two or one: an axis that is not there must not add 0 times infinity.
  void row(int64_t from, const Between& z, const Between& y, size_t count, void* out) {
    if (is_absent(u_.d)) return row_at(from, 0, y, count, out);
    row_at(from, z.low, y, count, blended_[0]);
    row_at(from, z.high, y, count, blended_[1]);
    upsample_loops().blend[type_](blended_[0], blended_[1], 1.0 - z.part, z.part, count, out);
  }

  void row_at(int64_t from, int64_t z, const Between& y, size_t count, void* out) {
    const void* top = widened(from, z, y.low, count);
    if (is_absent(u_.h)) {
      std::memcpy(out, top, count * element_size(compute_));
      return;
    }
    const void* bottom = y.high == y.low ? top : widened(from, z, y.high, count);
    upsample_loops().blend[type_](top, bottom, 1.0 - y.part, y.part, count, out);
  }

  // Input row `y` of image `z` at the output's width. Four are kept: rows and images that are even
  // or odd have places of their own, so that neighbours are there at once.
  const void* widened(int64_t from, int64_t z, int64_t y, size_t count) {
    const size_t slot = static_cast<size_t>(z % 2 * 2 + y % 2);
    const int64_t name = z * u_.h.in + y;
    if (cached_[slot] == name) return rows_[slot];
    cached_[slot] = name;
    const int64_t offset = from + z * u_.d.in_stride + y * u_.h.in_stride;
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
  int64_t cached_[4] = {-1, -1, -1, -1};
  int32_t left_[kChunk];  // offsets within a row
  int32_t right_[kChunk];
  alignas(64) uint64_t left_weight_[kChunk];  // of the type computed in, as is the rest
  alignas(64) uint64_t right_weight_[kChunk];
  alignas(64) uint64_t rows_[4][kChunk];
  alignas(64) uint64_t blended_[2][kChunk];
};

Status check_input(KernelContext& ctx, const Tensor& in, const char* allowed) {
  if (is_floating(in.dtype)) return {};
  return ctx.fail(Code::NotSupported, "input is %s, but must be %s", dtype_name(in.dtype), allowed);
}

Status resize_linear(KernelContext& ctx, const Tensor& in, const Upsampling& u, bool align_corners,
                     Tensor& out) {
  if (out.numel == 0) return {};
  if (u.w.in * u.w.in_stride > INT32_MAX) {
    return ctx.fail(Code::NotSupported,
                    "a row of input spans %lld elements; at most 2147483647 are supported",
                    static_cast<long long>(u.w.in * u.w.in_stride));
  }
  const DType compute = compute_dtype(in.dtype);
  if (LinearUpsampling::by_pixels(u)) {
    const int64_t grain = std::max<int64_t>(1, (1 << 14) / (u.w.out * u.c));
    ctx.parallel(u.n * u.h.out, grain, [&](int64_t begin, int64_t end) {
      LinearUpsampling(u, in, out, compute, align_corners).pixels(begin, end);
    });
  } else {
    ctx.parallel(u.n * u.c, u.plane_grain(), [&](int64_t begin, int64_t end) {
      LinearUpsampling(u, in, out, compute, align_corners).planes(begin, end);
    });
  }
  return {};
}

// upsample_linear1d and the like: self, output_size, align_corners, scales..., out
Status resize_linear_to(KernelContext& ctx, EValue* const* args, size_t dims) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[3 + dims]->tensor();
  RL_TRY(check_input(ctx, in, "floating"));
  Upsampling u;
  RL_TRY(read_upsampling_to(ctx, in, *args[1], args + 3, dims, out, &u));
  return resize_linear(ctx, in, u, args[2]->to_bool(), out);
}

}  // namespace

// upsample_bilinear2d.vec(input, output_size, align_corners, scale_factors, *, out)
Status upsample_bilinear2d_vec_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[4]->tensor();
  const bool align_corners = args[2]->to_bool();
  Upsampling u;
  if (in.dtype != DType::UInt8) RL_TRY(check_input(ctx, in, "floating or uint8"));
  RL_TRY(read_upsampling(ctx, in, *args[1], *args[3], out, &u));
  if (in.dtype == DType::UInt8) return upsample_bilinear_uint8(ctx, in, u, align_corners, out);
  return resize_linear(ctx, in, u, align_corners, out);
}

// upsample_bilinear2d(self, output_size, align_corners, scales_h, scales_w, *, out)
Status upsample_bilinear2d_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  if (in.dtype != DType::UInt8) return resize_linear_to(ctx, args, 2);
  Tensor& out = args[5]->tensor();
  Upsampling u;
  RL_TRY(read_upsampling_to(ctx, in, *args[1], args + 3, 2, out, &u));
  return upsample_bilinear_uint8(ctx, in, u, args[2]->to_bool(), out);
}

Status upsample_linear1d_out(KernelContext& ctx, EValue* const* args) {
  return resize_linear_to(ctx, args, 1);
}

Status upsample_trilinear3d_out(KernelContext& ctx, EValue* const* args) {
  return resize_linear_to(ctx, args, 3);
}

}  // namespace rushlight::kernels
