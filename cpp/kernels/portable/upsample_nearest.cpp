// Resizing by the nearest element: data movement, for elements of any type.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/strided_copy.h"
#include "rushlight/kernels/portable/upsample.h"
#include "rushlight/kernels/portable/view.h"

namespace rushlight::kernels {
namespace {

int64_t nearest(const UpsampleAxis& axis, int64_t o) {
  const float position = std::floor(static_cast<float>(o) * axis.scale<float>());
  if (!(position < static_cast<float>(axis.in))) return axis.in - 1;
  return std::min(static_cast<int64_t>(position), axis.in - 1);
}

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
  NearestUpsampling(const Upsampling& u, const Tensor& in, const Tensor& out)
      : u_(u),
        size_(static_cast<int64_t>(element_size(in.dtype))),
        in_(in.as<const uint8_t>()),
        out_(out.as<uint8_t>()) {}

  // Pixels of channels in a row.
  void pixels() {
    const size_t bytes = static_cast<size_t>(u_.c * size_);
    for (int64_t n = 0; n < u_.n; ++n) {
      for (int64_t h = 0; h < u_.h.out; ++h) {
        const int64_t from = n * u_.in_n + nearest(u_.h, h) * u_.h.in_stride;
        const int64_t to = n * u_.out_n + h * u_.h.out_stride;
        for (int64_t w = 0; w < u_.w.out; ++w) {
          const int64_t column = nearest(u_.w, w) * u_.w.in_stride;
          std::memcpy(out_ + (to + w * u_.w.out_stride) * size_, in_ + (from + column) * size_,
                      bytes);
        }
      }
    }
  }

  void rows() {
    for (int64_t begin = 0; begin < u_.w.out; begin += static_cast<int64_t>(kChunk)) {
      const int64_t end = std::min(begin + static_cast<int64_t>(kChunk), u_.w.out);
      for (int64_t w = begin; w < end; ++w) index_[w - begin] = nearest(u_.w, w) * u_.w.in_stride;
      for (int64_t n = 0; n < u_.n; ++n) {
        for (int64_t c = 0; c < u_.c; ++c) {
          const int64_t to = n * u_.out_n + c * u_.out_c + begin * u_.w.out_stride;
          plane(n * u_.in_n + c * u_.in_c, to, static_cast<size_t>(end - begin));
        }
      }
    }
  }

 private:
  void plane(int64_t from, int64_t to, size_t n) {
    const GatherRow gather = gather_row_of(static_cast<size_t>(size_));
    int64_t last = -1;
    for (int64_t h = 0; h < u_.h.out; ++h) {
      const int64_t row = nearest(u_.h, h);
      uint8_t* here = out_ + (to + h * u_.h.out_stride) * size_;
      if (row == last && u_.w.out_stride == 1) {
        std::memcpy(here, here - u_.h.out_stride * size_, n * static_cast<size_t>(size_));
      } else {
        gather(in_ + (from + row * u_.h.in_stride) * size_, index_, here, u_.w.out_stride, n);
      }
      last = row;
    }
  }

  Upsampling u_;
  int64_t size_;
  const uint8_t* in_;
  uint8_t* out_;
  int64_t index_[kChunk];
};

}  // namespace

// upsample_nearest2d.vec(input, output_size, scale_factors, *, out)
Status upsample_nearest2d_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[3]->tensor();
  if (element_size(in.dtype) > 8) {
    return ctx.fail(Code::NotSupported, "input is %s; elements have at most 8 bytes",
                    dtype_name(in.dtype));
  }
  Upsampling upsampling;
  RL_TRY(read_upsampling(ctx, in, *args[1], *args[2], out, &upsampling));
  if (out.numel == 0) return {};
  NearestUpsampling nearest_upsampling(upsampling, in, out);
  if (upsampling.in_c == 1 && upsampling.out_c == 1) {
    nearest_upsampling.pixels();
  } else {
    nearest_upsampling.rows();
  }
  return {};
}

}  // namespace rushlight::kernels
