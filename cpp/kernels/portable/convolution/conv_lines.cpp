// Convolution with one input channel per group, for any type. Each tap adds a piece of an input
// line to an output line.
#include <algorithm>

#include "rushlight/kernels/portable/convolution/conv.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/pooling/pool.h"
#include "rushlight/kernels/portable/rows.h"

namespace rushlight::kernels {
namespace {

template <typename T>
class Lines {
 public:
  // `sum` is the dtype of T, or the signed dtype of the same size.
  Lines(const Conv& conv, DType sum)
      : conv_(conv),
        sum_(sum),
        in_(*conv.input.tensor, sum),
        weight_(*conv.weight.tensor, sum),
        out_(*conv.out.tensor, sum) {
    for (size_t s = 0; s < kMaxSpatial; ++s) {
      // In a transposed convolution the geometry is reversed: the taps of an input position give
      // outputs.
      axes_[s].in = conv.transposed ? conv.out.size[s] : conv.input.size[s];
      axes_[s].out = conv.transposed ? conv.input.size[s] : conv.out.size[s];
      axes_[s].kernel = conv.weight.size[s];
      axes_[s].stride = conv.stride[s];
      axes_[s].padding = conv.padding[s];
      axes_[s].dilation = conv.dilation[s];
    }
  }

  // Computes output lines, numbered over images, channels and the outer dimensions.
  void run(int64_t first_line, int64_t last_line) {
    const int64_t channels = conv_.groups * conv_.group_out;
    for (int64_t line = first_line; line < last_line; ++line) {
      const int64_t h = line % conv_.out.size[1];
      const int64_t d = line / conv_.out.size[1] % conv_.out.size[0];
      const int64_t plane = line / conv_.out.size[1] / conv_.out.size[0];
      const int64_t image = plane / channels;
      const int64_t channel = plane % channels;
      const int64_t to = image * conv_.out.outer_stride + channel * conv_.out.inner_stride +
                         d * conv_.out.strides[0] + h * conv_.out.strides[1];
      for (int64_t begin = 0; begin < conv_.out.size[2]; begin += static_cast<int64_t>(kChunk)) {
        const int64_t end =
            std::min<int64_t>(begin + static_cast<int64_t>(kChunk), conv_.out.size[2]);
        const size_t n = static_cast<size_t>(end - begin);
        const int64_t at = to + begin * conv_.out.strides[2];
        T* acc = static_cast<T*>(out_.target(at, conv_.out.strides[2]));
        std::fill(acc, acc + n, bias_of(channel));
        add_rows(image, channel, d, h, begin, end, acc);
        out_.store(at, conv_.out.strides[2], n);
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

  // The input line that a tap reads for an output line along one dimension, or -1 if none.
  int64_t input_position(size_t s, int64_t output, int64_t tap) const {
    const PoolAxis& axis = axes_[s];
    int64_t at = axis.start(output) + tap * axis.dilation;
    if (conv_.transposed) {
      const int64_t from = output + axis.padding - tap * axis.dilation;
      if (from % axis.stride != 0) return -1;
      at = from / axis.stride;
    }
    return at >= 0 && at < conv_.input.size[s] ? at : -1;
  }

  void add_rows(int64_t image, int64_t channel, int64_t d, int64_t h, int64_t begin, int64_t end,
                T* acc) {
    const int64_t from =
        image * conv_.input.outer_stride + channel / conv_.group_out * conv_.input.inner_stride;
    // Weights are [out channels, 1, …]; transposed: [groups, out channels of a group, …].
    const int64_t weights = conv_.transposed
                                ? channel / conv_.group_out * conv_.weight.outer_stride +
                                      channel % conv_.group_out * conv_.weight.inner_stride
                                : channel * conv_.weight.outer_stride;
    for (int64_t i = 0; i < axes_[0].kernel; ++i) {
      const int64_t z = input_position(0, d, i);
      if (z < 0) continue;
      for (int64_t j = 0; j < axes_[1].kernel; ++j) {
        const int64_t y = input_position(1, h, j);
        if (y < 0) continue;
        add_row(from + z * conv_.input.strides[0] + y * conv_.input.strides[1],
                weights + i * conv_.weight.strides[0] + j * conv_.weight.strides[1], begin, end,
                acc);
      }
    }
  }

  // Adds the taps of one row of the kernel.
  void add_row(int64_t from, int64_t weights, int64_t begin, int64_t end, T* acc) {
    for (int64_t k = 0; k < axes_[2].kernel; ++k) {
      const T factor =
          *static_cast<const T*>(weight_.read(weights + k * conv_.weight.strides[2], 1, 1));
      if (conv_.transposed) {
        spread_tap(k, factor, from, begin, end, acc);
      } else {
        add_tap(k, factor, from, begin, end, acc);
      }
    }
  }

  void add_tap(int64_t k, T factor, int64_t from, int64_t begin, int64_t end, T* acc) {
    const PoolAxis& axis = axes_[2];
    int64_t lo = 0;
    int64_t hi = 0;
    axis.outputs_inside(k, &lo, &hi);
    lo = std::max(lo, begin);
    hi = std::min(hi, end);
    if (lo >= hi) return;
    const int64_t at = from + (axis.start(lo) + k * axis.dilation) * conv_.input.strides[2];
    const T* x = static_cast<const T*>(
        in_.read(at, axis.stride * conv_.input.strides[2], static_cast<size_t>(hi - lo)));
    T* to = acc + (lo - begin);
    for (int64_t o = 0; o < hi - lo; ++o) to[o] += factor * x[o];
  }

  // The same for a transposed convolution: inputs lo to hi - 1 are added to outputs one stride
  // apart.
  void spread_tap(int64_t k, T factor, int64_t from, int64_t begin, int64_t end, T* acc) {
    const PoolAxis& axis = axes_[2];
    int64_t lo = 0;
    int64_t hi = 0;
    axis.outputs_inside(k, &lo, &hi);
    const int64_t shift = axis.start(0) + k * axis.dilation;  // the output position of input 0
    if (begin > shift) lo = std::max(lo, (begin - shift + axis.stride - 1) / axis.stride);
    if (end <= shift) return;
    hi = std::min(hi, (end - shift + axis.stride - 1) / axis.stride);
    if (lo >= hi) return;
    const T* x = static_cast<const T*>(in_.read(
        from + lo * conv_.input.strides[2], conv_.input.strides[2], static_cast<size_t>(hi - lo)));
    T* to = acc + (axis.start(lo) + k * axis.dilation - begin);
    for (int64_t i = 0; i < hi - lo; ++i) to[i * axis.stride] += factor * x[i];
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
