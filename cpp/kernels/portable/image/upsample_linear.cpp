// Linear resizing along one, two or three axes.
#include <algorithm>
#include <cstring>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/image/upsample.h"
#include "rushlight/kernels/portable/loops/image/upsample.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/rows.h"
#include "rushlight/kernels/portable/scratch_shares.h"

namespace rushlight::kernels {
namespace {

// The two input positions that an output lies between, and its distance from the first.
struct Between {
  int64_t low;
  int64_t high;
  double part;
};

// Computed in T, which is the type that eager PyTorch computes in, so that the parts agree exactly.
template <typename T>
Between between(const UpsampleAxis& axis, bool align_corners, int64_t o) {
  if (axis.in == axis.out) return {o, o, 0};  // for any scale factor
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

  // True for two-dimensional images whose channels are adjacent in memory and whose pixels follow
  // each other.
  static bool by_pixels(const Upsampling& u) {
    const auto fits = [&](int64_t channel, int64_t pixel) { return channel == 1 && pixel == u.c; };
    return u.c > 1 && u.c <= static_cast<int64_t>(kChunk) && is_absent(u.d) && !is_absent(u.h) &&
           fits(u.in_c, u.w.in_stride) && fits(u.out_c, u.w.out_stride);
  }

  // Computes rows first..last - 1 of all images pixel by pixel. `memory` holds two input rows in
  // the computing type; it is not used if the input has that type.
  void pixels(int64_t first, int64_t last, uint8_t* memory) {
    memory_ = memory;
    for (int64_t begin = 0; begin < u_.w.out; begin += static_cast<int64_t>(kChunk)) {
      const size_t count =
          static_cast<size_t>(std::min(static_cast<int64_t>(kChunk), u_.w.out - begin));
      locate(begin, count);
      for (int64_t line = first; line < last; ++line) {
        const int64_t n = line / u_.h.out;
        const int64_t h = line % u_.h.out;
        const int64_t to = n * u_.out_n + h * u_.h.out_stride + begin * u_.w.out_stride;
        pixel_line(n, place(u_.h, h), count, to);
      }
    }
  }

  // Computes planes first..last - 1, one row after the other.
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

  void pixel_line(int64_t n, const Between& y, size_t count, int64_t to) {
    PixelLine line = {};
    line.rows[0] = converted_row(n, y.low);
    line.rows[1] = converted_row(n, y.high);
    line.row_weight[0] = 1.0 - y.part;
    line.row_weight[1] = y.part;
    line.channels = static_cast<size_t>(u_.c);
    const size_t size = element_size(compute_);
    const size_t most = out_.limit(1) / line.channels;
    for (size_t done = 0; done < count; done += most) {
      line.left = left_ + done;
      line.right = right_ + done;
      line.left_weight = reinterpret_cast<const uint8_t*>(left_weight_) + done * size;
      line.right_weight = reinterpret_cast<const uint8_t*>(right_weight_) + done * size;
      const size_t pixels = std::min(most, count - done);
      const int64_t there = to + static_cast<int64_t>(done * line.channels);
      upsample_loops().blend_pixels[type_](line, pixels, out_.target(there, 1));
      out_.store(there, 1, pixels * line.channels);
    }
  }

  // Input row `y` of image `n` in the computing type. One even and one odd row are kept.
  const void* converted_row(int64_t n, int64_t y) {
    const uint8_t* here = in_.at(n * u_.in_n + y * u_.h.in_stride);
    if (in_.same_type()) return here;
    const size_t elements = static_cast<size_t>(u_.w.in * u_.c);
    uint8_t* const row = memory_ + static_cast<size_t>(y % 2) * elements * element_size(compute_);
    const int64_t name = n * u_.h.in + y;
    if (cached_[y % 2] != name) in_.convert_to(here, row, elements);
    cached_[y % 2] = name;
    return row;
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

  // Blends four rows, two or one. A missing axis must not be blended, since that could add 0 times
  // infinity.
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

  // Input row `y` of depth `z`, resized to the output's width. Four rows are kept, one for each
  // combination of even and odd z and y, so that neighbours are available together.
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
  uint8_t* memory_ = nullptr;
  int64_t cached_[4] = {-1, -1, -1, -1};
  int32_t left_[kChunk];  // offsets within a row
  int32_t right_[kChunk];
  alignas(64) uint64_t left_weight_[kChunk];  // of the computing type, as are all below
  alignas(64) uint64_t right_weight_[kChunk];
  alignas(64) uint64_t rows_[4][kChunk];
  alignas(64) uint64_t blended_[2][kChunk];
};

Status check_input(KernelContext& ctx, const Tensor& in, const char* allowed) {
  if (is_floating(in.dtype)) return {};
  return ctx.fail(Code::NotSupported, "input is %s, but must be %s", dtype_name(in.dtype), allowed);
}

// Returns false and does nothing if there is no scratch memory for converted rows.
bool resize_by_pixels(KernelContext& ctx, const Upsampling& u, const Tensor& in, const Tensor& out,
                      bool align_corners) {
  const DType compute = compute_dtype(in.dtype);
  const int64_t lines = u.n * u.h.out;
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / (u.w.out * u.c));
  const auto run = [&](int64_t begin, int64_t end, void* memory) {
    LinearUpsampling worker(u, in, out, compute, align_corners);
    worker.pixels(begin, end, static_cast<uint8_t*>(memory));
  };
  if (in.dtype == compute) {
    ctx.parallel(lines, grain, [&](int64_t begin, int64_t end) { run(begin, end, nullptr); });
    return true;
  }
  const ScratchShares shares(ctx);
  if (2 * static_cast<size_t>(u.w.in * u.c) * element_size(compute) > shares.bytes()) return false;
  const int64_t items = (lines + grain - 1) / grain;
  shares.run(ctx, items, [&](int64_t share, int64_t first, int64_t stride) {
    for (int64_t item = first; item < items; item += stride) {
      run(item * grain, std::min(lines, (item + 1) * grain), shares.memory(share));
    }
  });
  return true;
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
  if (LinearUpsampling::by_pixels(u) && resize_by_pixels(ctx, u, in, out, align_corners)) return {};
  ctx.parallel(u.n * u.c, u.plane_grain(), [&](int64_t begin, int64_t end) {
    LinearUpsampling(u, in, out, compute, align_corners).planes(begin, end);
  });
  return {};
}

// upsample_linear1d and similar: self, output_size, align_corners, scales..., out
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
