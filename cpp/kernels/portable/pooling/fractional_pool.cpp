// Max pooling over windows whose positions depend on a random number for each channel and dimension
// (B. Graham, Fractional max-pooling, 2014).
#include <algorithm>
#include <cmath>
#include <limits>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"

namespace rushlight::kernels {
namespace {

constexpr int kMaxSample = 1 << 20;  // times a size, it fits int64

// One spatial dimension. A tensor with two has a first one of size 1.
struct Axis {
  int64_t in = 1;
  int64_t out = 1;
  int64_t kernel = 1;

  // The start of window i: a fraction of the input, shifted by the sample.
  template <typename T>
  int64_t start(int64_t i, T sample) const {
    if (i == out - 1) return in - kernel;
    const T interval = static_cast<T>(in - kernel) / static_cast<T>(out - 1);
    const int64_t place = static_cast<int64_t>((static_cast<T>(i) + sample) * interval) -
                          static_cast<int64_t>(sample * interval);
    // Rounding, or a sample outside of 0..1, could give a position outside of the input.
    return std::min(std::max<int64_t>(place, 0), in - kernel);
  }
};

struct Pool {
  Axis axis[3];
  size_t dims;  // 2 or 3

  int64_t in() const { return axis[0].in * axis[1].in * axis[2].in; }
  int64_t out() const { return axis[0].out * axis[1].out * axis[2].out; }
};

// Finds the greatest element of a window, or its last NaN, and its index in the channel.
template <typename T>
void window(const Pool& p, const T* in, const int64_t* first, T* out, int64_t* index) {
  T best = -std::numeric_limits<T>::infinity();
  int64_t place = (first[0] * p.axis[1].in + first[1]) * p.axis[2].in + first[2];
  for (int64_t d = first[0]; d < first[0] + p.axis[0].kernel; ++d) {
    for (int64_t h = first[1]; h < first[1] + p.axis[1].kernel; ++h) {
      const int64_t line = (d * p.axis[1].in + h) * p.axis[2].in;
      for (int64_t w = first[2]; w < first[2] + p.axis[2].kernel; ++w) {
        const T value = in[line + w];
        if (!(value > best || std::isnan(value))) continue;
        best = value;
        place = line + w;
      }
    }
  }
  *out = best;
  *index = place;
}

template <typename T>
void channel(const Pool& p, const T* in, const T* samples, T* out, int64_t* indices) {
  // Samples are in the order of the dimensions, but for two dimensions in the order x, y.
  const T sample[3] = {p.dims == 3 ? samples[0] : T(0), samples[1],
                       p.dims == 3 ? samples[2] : samples[0]};
  int64_t first[3];
  for (int64_t d = 0; d < p.axis[0].out; ++d) {
    first[0] = p.axis[0].start(d, sample[0]);
    for (int64_t h = 0; h < p.axis[1].out; ++h) {
      first[1] = p.axis[1].start(h, sample[1]);
      for (int64_t w = 0; w < p.axis[2].out; ++w) {
        first[2] = p.axis[2].start(w, sample[2]);
        window(p, in, first, out++, indices++);
      }
    }
  }
}

Status read_axes(KernelContext& ctx, const Tensor& self, const EValue& kernel, const EValue& size,
                 Pool* pool) {
  if (self.rank != pool->dims + 1 && self.rank != pool->dims + 2) {
    return ctx.fail(Code::InvalidArgument, "self has shape %s, but must have %zu or %zu dimensions",
                    ShapeText(self.shape()).text(), pool->dims + 1, pool->dims + 2);
  }
  if (kernel.size() != pool->dims || size.size() != pool->dims) {
    return ctx.fail(Code::InvalidArgument,
                    "kernel_size has %zu and output_size %zu elements, but must have %zu",
                    kernel.size(), size.size(), pool->dims);
  }
  for (size_t d = 0; d < pool->dims; ++d) {
    Axis& axis = pool->axis[3 - pool->dims + d];
    axis = {self.sizes[self.rank - pool->dims + d], size.int_at(d), kernel.int_at(d)};
    if (axis.out > 0 && axis.kernel > 0 && axis.kernel <= axis.in &&
        axis.out <= axis.in - axis.kernel + 1) {
      continue;
    }
    return ctx.fail(Code::InvalidArgument,
                    "%lld windows of %lld do not fit dimension %zu of self, whose shape is %s",
                    static_cast<long long>(axis.out), static_cast<long long>(axis.kernel),
                    self.rank - pool->dims + d, ShapeText(self.shape()).text());
  }
  return {};
}

template <typename T>
Status check_samples(KernelContext& ctx, const Tensor& samples) {
  for (int64_t i = 0; i < samples.numel; ++i) {
    const T sample = samples.as<const T>()[i];
    if (std::abs(sample) <= T(kMaxSample)) continue;
    return ctx.fail(Code::InvalidArgument,
                    "random_samples holds %g, but must be from 0 to 1 (at most %d is taken)",
                    static_cast<double>(sample), kMaxSample);
  }
  return {};
}

template <typename T>
void run(KernelContext& ctx, const Pool& pool, const Tensor& self, const Tensor& samples,
         const Tensor& out, const Tensor& indices) {
  if (self.numel == 0) return;  // without channels, sizes may be any
  const int64_t channels = self.numel / pool.in();
  ctx.parallel(channels, kGrain / pool.in() + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      channel(pool, self.as<const T>() + i * pool.in(),
              samples.as<const T>() + i * static_cast<int64_t>(pool.dims),
              out.as<T>() + i * pool.out(), indices.as<int64_t>() + i * pool.out());
    }
  });
}

// fractional_max_pool*d(self, kernel_size, output_size, random_samples, *, output, indices)
Status fractional(KernelContext& ctx, EValue* const* args, size_t dims) {
  const Tensor& self = args[0]->tensor();
  const Tensor& samples = args[3]->tensor();
  Tensor& out = args[4]->tensor();
  Tensor& indices = args[5]->tensor();
  Pool pool{{}, dims};
  const bool wide = self.dtype == DType::Float64;
  if (!wide && self.dtype != DType::Float32) {
    return ctx.fail(Code::NotSupported, "self is %s, but must be float32 or float64",
                    dtype_name(self.dtype));
  }
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(check_same_type(ctx, "random_samples", samples, out));
  RL_TRY(check_dtype(ctx, "indices", indices, DType::Int64));
  RL_TRY(read_axes(ctx, self, *args[1], *args[2], &pool));
  Shape shape(self.shape());
  for (size_t d = 0; d < dims; ++d) {
    shape.sizes[shape.rank - dims + d] = static_cast<int32_t>(pool.axis[3 - dims + d].out);
  }
  int64_t channels = 1;
  for (size_t d = 0; d + dims < self.rank; ++d) channels *= self.sizes[d];
  if (samples.rank != 3 || samples.numel != channels * static_cast<int64_t>(dims) ||
      samples.sizes[2] != static_cast<int32_t>(dims) || !samples.is_contiguous()) {
    return ctx.fail(Code::InvalidArgument,
                    "random_samples has shape %s, but self, of shape %s, needs %zu numbers for "
                    "each channel",
                    ShapeText(samples.shape()).text(), ShapeText(self.shape()).text(), dims);
  }
  RL_TRY(wide ? check_samples<double>(ctx, samples) : check_samples<float>(ctx, samples));
  RL_TRY(ctx.resize(out, shape.span()));
  RL_TRY(ctx.resize(indices, shape.span()));
  if (!self.is_contiguous() || !out.is_contiguous() || !indices.is_contiguous()) {
    return ctx.fail(Code::NotSupported, "the tensors do not lie in row-major order");
  }
  if (wide) {
    run<double>(ctx, pool, self, samples, out, indices);
  } else {
    run<float>(ctx, pool, self, samples, out, indices);
  }
  return {};
}

}  // namespace

Status fractional_max_pool2d_out(KernelContext& ctx, EValue* const* args) {
  return fractional(ctx, args, 2);
}

Status fractional_max_pool3d_out(KernelContext& ctx, EValue* const* args) {
  return fractional(ctx, args, 3);
}

}  // namespace rushlight::kernels
