// Resizing by the nearest element. It only moves data, so elements may have any type.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/image/upsample.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/movement/view.h"

namespace rushlight::kernels {
namespace {

// How the input element for an output element is chosen: the element at its start, or (`exact`) at
// its centre. Positions are computed in the same type as in eager PyTorch.
struct Choice {
  bool exact = false;
  bool wide = false;   // compute in float64
  bool plain = false;  // sizes that are kept or doubled need no positions, for any factor

  int64_t operator()(const UpsampleAxis& axis, int64_t o) const {
    if (plain && axis.out == axis.in) return o;
    if (plain && axis.out == 2 * axis.in) return o / 2;
    return wide ? nearest<double>(axis, o) : nearest<float>(axis, o);
  }

 private:
  template <typename T>
  int64_t nearest(const UpsampleAxis& axis, int64_t o) const {
    T position = static_cast<T>(o) * axis.scale<T>();
    if (exact) {
      const T centre = axis.position<T>(false, o);
      position = (centre > 0 ? centre : static_cast<T>(0)) + static_cast<T>(0.5);
    }
    position = std::floor(position);
    if (!(position < static_cast<T>(axis.in))) return axis.in - 1;
    return std::min(static_cast<int64_t>(position), axis.in - 1);
  }
};

template <typename T>
void gather_row(const uint8_t* from, const int64_t* index, uint8_t* to, int64_t stride, size_t n) {
  const T* in = reinterpret_cast<const T*>(from);
  T* out = reinterpret_cast<T*>(to);
  if (stride == 1) {
    for (size_t i = 0; i < n; ++i) out[i] = in[index[i]];
  } else {
    for (size_t i = 0; i < n; ++i) out[static_cast<int64_t>(i) * stride] = in[index[i]];
  }
}

using GatherRow = void (*)(const uint8_t*, const int64_t*, uint8_t*, int64_t, size_t);

GatherRow gather_row_of(size_t element_size) {
  switch (element_size) {
    case 1:
      return gather_row<uint8_t>;
    case 2:
      return gather_row<uint16_t>;
    case 4:
      return gather_row<uint32_t>;
    default:
      return gather_row<uint64_t>;
  }
}

class NearestUpsampling {
 public:
  NearestUpsampling(const Upsampling& u, bool exact, const Tensor& in, const Tensor& out)
      : u_(u),
        size_(static_cast<int64_t>(element_size(in.dtype))),
        in_(in.as<const uint8_t>()),
        out_(out.as<uint8_t>()) {
    nearest_.exact = exact;
    nearest_.wide = in.dtype == DType::Float64;
    nearest_.plain = !exact && is_plain(u, in.rank - size_t{2});
  }

  void run(KernelContext& ctx) {
    if (u_.in_c == 1 && u_.out_c == 1) {
      pixels(ctx);
    } else {
      rows(ctx);
    }
  }

 private:
  // Copies whole pixels, whose channels are adjacent.
  void pixels(KernelContext& ctx) {
    const size_t bytes = static_cast<size_t>(u_.c * size_);
    const int64_t lines = u_.n * u_.d.out * u_.h.out;
    const int64_t grain = std::max<int64_t>(1, kGrain / (u_.w.out * u_.c));
    ctx.parallel(lines, grain, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t h = line % u_.h.out;
        const int64_t d = line / u_.h.out % u_.d.out;
        const int64_t n = line / u_.h.out / u_.d.out;
        const int64_t from =
            n * u_.in_n + nearest_(u_.d, d) * u_.d.in_stride + nearest_(u_.h, h) * u_.h.in_stride;
        const int64_t to = n * u_.out_n + d * u_.d.out_stride + h * u_.h.out_stride;
        for (int64_t w = 0; w < u_.w.out; ++w) {
          const int64_t column = nearest_(u_.w, w) * u_.w.in_stride;
          std::memcpy(out_ + (to + w * u_.w.out_stride) * size_, in_ + (from + column) * size_,
                      bytes);
        }
      }
    });
  }

  void rows(KernelContext& ctx) {
    for (int64_t begin = 0; begin < u_.w.out; begin += static_cast<int64_t>(kChunk)) {
      const int64_t end = std::min(begin + static_cast<int64_t>(kChunk), u_.w.out);
      for (int64_t w = begin; w < end; ++w) index_[w - begin] = nearest_(u_.w, w) * u_.w.in_stride;
      ctx.parallel(u_.n * u_.c, u_.plane_grain(), [&](int64_t first, int64_t last) {
        for (int64_t plane = first; plane < last; ++plane) {
          for (int64_t d = 0; d < u_.d.out; ++d) {
            const int64_t from = u_.in_plane(plane) + nearest_(u_.d, d) * u_.d.in_stride;
            const int64_t to = u_.out_plane(plane) + d * u_.d.out_stride + begin * u_.w.out_stride;
            image(from, to, static_cast<size_t>(end - begin));
          }
        }
      });
    }
  }

  void image(int64_t from, int64_t to, size_t n) const {
    const GatherRow gather = gather_row_of(static_cast<size_t>(size_));
    int64_t last = -1;
    for (int64_t h = 0; h < u_.h.out; ++h) {
      const int64_t row = nearest_(u_.h, h);
      uint8_t* here = out_ + (to + h * u_.h.out_stride) * size_;
      if (row == last && u_.w.out_stride == 1) {
        std::memcpy(here, here - u_.h.out_stride * size_, n * static_cast<size_t>(size_));
      } else {
        gather(in_ + (from + row * u_.h.in_stride) * size_, index_, here, u_.w.out_stride, n);
      }
      last = row;
    }
  }

  // True if eager uses its kernel that compares the sizes first.
  static bool is_plain(const Upsampling& u, size_t dims) {
    constexpr int64_t kSmall = 128;
    if (dims == 2 && u.h.out + u.w.out <= kSmall) return true;
    return dims > 1 && u.c > 3 && u.channels_last();
  }

  static constexpr int64_t kGrain = 1 << 14;

  Upsampling u_;
  Choice nearest_;
  int64_t size_;
  const uint8_t* in_;
  uint8_t* out_;
  int64_t index_[kChunk];
};

Status check_size(KernelContext& ctx, const Tensor& in) {
  if (element_size(in.dtype) <= 8) return {};
  return ctx.fail(Code::NotSupported, "input is %s; elements have at most 8 bytes",
                  dtype_name(in.dtype));
}

// upsample_nearest*d.out(self, output_size, scales..., *, out)
Status resize_nearest(KernelContext& ctx, EValue* const* args, size_t dims, bool exact) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[2 + dims]->tensor();
  RL_TRY(check_size(ctx, in));
  Upsampling upsampling;
  RL_TRY(read_upsampling_to(ctx, in, *args[1], args + 2, dims, out, &upsampling));
  if (out.numel > 0) NearestUpsampling(upsampling, exact, in, out).run(ctx);
  return {};
}

}  // namespace

// upsample_nearest2d.vec(input, output_size, scale_factors, *, out)
Status upsample_nearest2d_vec_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[3]->tensor();
  RL_TRY(check_size(ctx, in));
  Upsampling upsampling;
  RL_TRY(read_upsampling(ctx, in, *args[1], *args[2], out, &upsampling));
  if (out.numel > 0) NearestUpsampling(upsampling, false, in, out).run(ctx);
  return {};
}

Status upsample_nearest1d_out(KernelContext& ctx, EValue* const* args) {
  return resize_nearest(ctx, args, 1, false);
}

Status upsample_nearest2d_out(KernelContext& ctx, EValue* const* args) {
  return resize_nearest(ctx, args, 2, false);
}

Status upsample_nearest3d_out(KernelContext& ctx, EValue* const* args) {
  return resize_nearest(ctx, args, 3, false);
}

Status upsample_nearest_exact1d_out(KernelContext& ctx, EValue* const* args) {
  return resize_nearest(ctx, args, 1, true);
}

Status upsample_nearest_exact2d_out(KernelContext& ctx, EValue* const* args) {
  return resize_nearest(ctx, args, 2, true);
}

Status upsample_nearest_exact3d_out(KernelContext& ctx, EValue* const* args) {
  return resize_nearest(ctx, args, 3, true);
}

}  // namespace rushlight::kernels
