// Convolution with one input channel per group, of any type: each tap adds a piece of a line of
// input to a line of output.
#include <algorithm>

#include "rushlight/kernels/portable/conv.h"
#include "rushlight/kernels/portable/pool.h"
#include "rushlight/kernels/portable/rows.h"
#include "rushlight/kernels/portable/strided_copy.h"
#include "rushlight/kernels/portable/view.h"

namespace rushlight::kernels {
namespace {

template <typename T>
class Lines {
 public:
  // `sum` is the type T, or the signed type of the same bits.
  Lines(const Conv& conv, DType sum)
      : conv_(conv),
        sum_(sum),
        in_(*conv.input.tensor, sum),
        weight_(*conv.weight.tensor, sum),
        out_(*conv.out.tensor, sum) {
    for (size_t s = 0; s < kMaxSpatial; ++s) {
      axes_[s].in = conv.input.size[s];
      axes_[s].out = conv.out.size[s];
      axes_[s].kernel = conv.weight.size[s];
      axes_[s].stride = conv.stride[s];
      axes_[s].padding = conv.padding[s];
      axes_[s].dilation = conv.dilation[s];
    }
  }

  // Lines of output, counted over images, channels and the outer dimensions.
  void run(int64_t first_line, int64_t last_line) {
    const int64_t channels = conv_.groups * conv_.group_out;
    for (int64_t line = first_line; line < last_line; ++line) {
      const int64_t h = line % conv_.out.size[1];
      const int64_t d = line / conv_.out.size[1] % conv_.out.size[0];
      const int64_t plane = line / conv_.out.size[1] / conv_.out.size[0];
      const int64_t image = plane / channels;
      const int64_t channel = plane % channels;
      const int64_t to = image * conv_.out.outer_step + channel * conv_.out.inner_step +
                         d * conv_.out.step[0] + h * conv_.out.step[1];
      for (int64_t begin = 0; begin < axes_[2].out; begin += static_cast<int64_t>(kChunk)) {
        const int64_t end = std::min(begin + static_cast<int64_t>(kChunk), axes_[2].out);
        const size_t n = static_cast<size_t>(end - begin);
        const int64_t at = to + begin * conv_.out.step[2];
        T* acc = static_cast<T*>(out_.target(at, conv_.out.step[2]));
        std::fill(acc, acc + n, bias_of(channel));
        add_rows(image, channel, d, h, begin, end, acc);
        out_.store(at, conv_.out.step[2], n);
      }
    }
  }

 private:
  T bias_of(int64_t channel) const {
    T bias = 0;
    if (conv_.bias != nullptr) {
      convert(element_at(*conv_.bias, channel), conv_.bias->dtype, &bias, sum_, 1);
    }
    return bias;
  }

  void add_rows(int64_t image, int64_t channel, int64_t d, int64_t h, int64_t begin, int64_t end,
                T* acc) {
    const int64_t from =
        image * conv_.input.outer_step + channel / conv_.group_out * conv_.input.inner_step;
    for (int64_t i = 0; i < axes_[0].kernel; ++i) {
      const int64_t z = axes_[0].start(d) + i * axes_[0].dilation;
      if (z < 0 || z >= axes_[0].in) continue;
      for (int64_t j = 0; j < axes_[1].kernel; ++j) {
        const int64_t y = axes_[1].start(h) + j * axes_[1].dilation;
        if (y < 0 || y >= axes_[1].in) continue;
        add_row(
            from + z * conv_.input.step[0] + y * conv_.input.step[1],
            channel * conv_.weight.outer_step + i * conv_.weight.step[0] + j * conv_.weight.step[1],
            begin, end, acc);
      }
    }
  }

  // The taps of one row of the kernel.
  void add_row(int64_t from, int64_t weights, int64_t begin, int64_t end, T* acc) {
    const PoolAxis& axis = axes_[2];
    for (int64_t k = 0; k < axis.kernel; ++k) {
      int64_t lo = 0;
      int64_t hi = 0;
      axis.outputs_inside(k, &lo, &hi);
      lo = std::max(lo, begin);
      hi = std::min(hi, end);
      if (lo >= hi) continue;
      const T factor =
          *static_cast<const T*>(weight_.read(weights + k * conv_.weight.step[2], 1, 1));
      const int64_t at = from + (axis.start(lo) + k * axis.dilation) * conv_.input.step[2];
      const T* x = static_cast<const T*>(
          in_.read(at, axis.stride * conv_.input.step[2], static_cast<size_t>(hi - lo)));
      T* to = acc + (lo - begin);
      for (int64_t o = 0; o < hi - lo; ++o) to[o] += factor * x[o];
    }
  }

  const Conv& conv_;
  DType sum_;
  PoolAxis axes_[kMaxSpatial];
  RowReader in_;
  RowReader weight_;
  RowWriter out_;
};

template <typename T>
void run(KernelContext& ctx, const Conv& conv, DType sum) {
  const int64_t lines =
      conv.batch * conv.groups * conv.group_out * conv.out.size[0] * int64_t{conv.out.size[1]};
  ctx.parallel(lines, pool_grain(conv.out.size[2] * conv.taps()),
               [&](int64_t begin, int64_t end) { Lines<T>(conv, sum).run(begin, end); });
}

}  // namespace

void conv_lines(KernelContext& ctx, const Conv& conv) {
  const DType dtype = conv.out.tensor->dtype;
  if (dtype == DType::Float64) return run<double>(ctx, conv, DType::Float64);
  if (dtype == DType::Int64) return run<uint64_t>(ctx, conv, DType::Int64);
  if (is_floating(dtype)) return run<float>(ctx, conv, DType::Float32);
  run<uint32_t>(ctx, conv, DType::Int32);
}

}  // namespace rushlight::kernels
