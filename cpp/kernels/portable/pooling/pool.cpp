#include "rushlight/kernels/portable/pooling/pool.h"

#include <algorithm>

#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {
namespace {

// Entry `axis` of a list that has one entry for all axes or one for each.
int64_t entry(const EValue& list, size_t axis) { return list.int_at(list.size() == 1 ? 0 : axis); }

Status check_list(KernelContext& ctx, const char* name, const EValue& list, size_t spatial,
                  int64_t lowest) {
  if (list.size() != 1 && list.size() != spatial) {
    return ctx.fail(Code::InvalidArgument, "%s has %zu entries, but must have one or %s", name,
                    list.size(), spatial == 2 ? "two" : "three");
  }
  for (size_t k = 0; k < list.size(); ++k) {
    const int64_t value = list.int_at(k);
    if (value >= lowest && value <= INT32_MAX) continue;
    return ctx.fail(Code::InvalidArgument, "%s[%zu] is %lld, but must be from %lld to 2147483647",
                    name, k, static_cast<long long>(value), static_cast<long long>(lowest));
  }
  return {};
}

// Returns InvalidArgument unless `in` has a shape [N, C, H, W] or [C, H, W] in which only N may be
// 0, and few enough pixels for 32-bit positions.
Status check_images(KernelContext& ctx, const Tensor& in, size_t spatial) {
  bool fits = in.rank == spatial + 1 || in.rank == spatial + 2;
  for (size_t k = 1; fits && k <= spatial + 1; ++k) fits = in.sizes[in.rank - k] > 0;
  if (!fits) {
    const char* form =
        spatial == 2 ? "[N, C, H, W] or [C, H, W]" : "[N, C, D, H, W] or [C, D, H, W]";
    return ctx.fail(Code::InvalidArgument,
                    "self has shape %s, but must be %s with no size but N being 0",
                    ShapeText(in.shape()).text(), form);
  }
  int64_t pixels = 1;
  for (size_t k = 1; k <= spatial && pixels <= INT32_MAX; ++k) pixels *= in.sizes[in.rank - k];
  if (pixels <= INT32_MAX) return {};
  return ctx.fail(Code::NotSupported, "self has %lld pixels; at most 2147483647 are supported",
                  static_cast<long long>(pixels));
}

// The number of windows along an axis; less than 1 if no window fits.
int64_t count_windows(const PoolAxis& axis, bool ceil_mode) {
  const int64_t span = axis.in + 2 * axis.padding - axis.dilation * (axis.kernel - 1) - 1;
  if (span < 0 && !(ceil_mode && span + axis.stride > 0)) return 0;
  const int64_t rest = span + (ceil_mode ? axis.stride - 1 : 0);
  int64_t out = rest / axis.stride + 1;
  // The last window must start inside of the input or of the padding before it.
  if (ceil_mode && (out - 1) * axis.stride >= axis.in + axis.padding) --out;
  return out;
}

}  // namespace

PoolWindow PoolAxis::window(int64_t o) const {
  if (adaptive) {
    const int64_t begin = o * in / out;
    const int64_t end = ((o + 1) * in + out - 1) / out;
    return {begin, end, end - begin};
  }
  const int64_t first = start(o);
  const int64_t padded_end = std::min(first + kernel, in + padding);
  const int64_t begin = std::max<int64_t>(first, 0);
  const int64_t end = std::min(padded_end, in);
  if (begin >= end) return {0, 0, 1};
  return {begin, end, count_padding ? padded_end - first : end - begin};
}

PoolTaps PoolAxis::taps(int64_t o) const {
  if (adaptive) {
    const PoolWindow covered = window(o);
    return {covered.begin, covered.end, 1};
  }
  const int64_t first = start(o);
  const int64_t end = std::min(first + (kernel - 1) * dilation + 1, in);
  if (first >= 0) return {first, end, dilation};
  return {first + (-first + dilation - 1) / dilation * dilation, end, dilation};
}

void PoolAxis::outputs_over(int64_t position, int64_t* lo, int64_t* hi) const {
  if (adaptive) {
    *lo = position * out / in;
    *hi = ((position + 1) * out + in - 1) / in;
    return;
  }
  const int64_t right = position + padding;  // distance from output 0's first tap
  const int64_t before = right - (kernel - 1) * dilation;
  *lo = before > 0 ? (before + stride - 1) / stride : 0;
  *hi = std::min(right / stride + 1, out);
}

void PoolAxis::outputs_inside(int64_t tap, int64_t* lo, int64_t* hi) const {
  const int64_t shift = padding - tap * dilation;  // distance from output 0's tap to the input
  *lo = shift > 0 ? (shift + stride - 1) / stride : 0;
  *hi = in + shift > 0 ? std::min((in + shift - 1) / stride + 1, out) : 0;
}

void Pooling::take_strides(const Tensor& in, const Tensor& out, size_t spatial) {
  const size_t channel = in.rank - spatial - 1;
  n = channel > 0 ? in.sizes[0] : 1;
  c = in.sizes[channel];
  in_n = channel > 0 ? in.strides[0] : 0;
  in_c = in.strides[channel];
  in_d = spatial == 3 ? in.strides[channel + 1] : 0;
  in_h = in.strides[in.rank - 2];
  in_w = in.strides[in.rank - 1];
  out_n = channel > 0 ? out.strides[0] : 0;
  out_c = out.strides[channel];
  out_d = spatial == 3 ? out.strides[channel + 1] : 0;
  out_h = out.strides[out.rank - 2];
  out_w = out.strides[out.rank - 1];
}

PoolLine channel_line(const Pooling& p, int64_t i) {
  const int64_t h = i % p.h.out;
  const int64_t d = i / p.h.out % p.d.out;
  const int64_t plane = i / p.h.out / p.d.out;
  const int64_t image = plane / p.c;
  const int64_t channel = plane % p.c;
  return {d, h, image * p.in_n + channel * p.in_c,
          image * p.out_n + channel * p.out_c + d * p.out_d + h * p.out_h};
}

PoolLine pixel_line(const Pooling& p, int64_t i) {
  const int64_t h = i % p.h.out;
  const int64_t d = i / p.h.out % p.d.out;
  const int64_t image = i / p.h.out / p.d.out;
  return {d, h, image * p.in_n, image * p.out_n + d * p.out_d + h * p.out_h};
}

int64_t pool_grain(int64_t line_work) {
  constexpr int64_t kWork = 32 * 1024;
  return std::max<int64_t>(kWork / std::max<int64_t>(line_work, 1), 1);
}

Status read_pooling(KernelContext& ctx, const Tensor& in, size_t spatial,
                    const PoolArguments& arguments, Pooling* pooling, Shape* shape) {
  const EValue& kernel = arguments.kernel;
  const EValue& stride = arguments.stride;
  RL_TRY(check_images(ctx, in, spatial));
  RL_TRY(check_list(ctx, "kernel_size", kernel, spatial, 1));
  if (stride.size() > 0) RL_TRY(check_list(ctx, "stride", stride, spatial, 1));
  RL_TRY(check_list(ctx, "padding", arguments.padding, spatial, 0));
  if (arguments.dilation != nullptr) {
    RL_TRY(check_list(ctx, "dilation", *arguments.dilation, spatial, 1));
  }
  *shape = Shape(in.shape());
  for (size_t k = 0; k < spatial; ++k) {
    PoolAxis& axis = pooling->axis(k, spatial);
    const size_t dim = in.rank - spatial + k;
    axis.in = in.sizes[dim];
    axis.kernel = entry(kernel, k);
    axis.stride = entry(stride.size() > 0 ? stride : kernel, k);
    axis.padding = entry(arguments.padding, k);
    if (arguments.dilation != nullptr) axis.dilation = entry(*arguments.dilation, k);
    if (axis.padding > axis.kernel / 2) {
      return ctx.fail(
          Code::InvalidArgument,
          "padding is %lld along dimension %zu, but at most half of kernel_size %lld is "
          "allowed",
          static_cast<long long>(axis.padding), dim, static_cast<long long>(axis.kernel));
    }
    axis.out = count_windows(axis, arguments.ceil_mode);
    if (axis.out < 1 || axis.out > INT32_MAX) {
      return ctx.fail(Code::InvalidArgument,
                      "self has size %lld along dimension %zu, which does not fit kernel_size %lld "
                      "with padding %lld and dilation %lld",
                      static_cast<long long>(axis.in), dim, static_cast<long long>(axis.kernel),
                      static_cast<long long>(axis.padding), static_cast<long long>(axis.dilation));
    }
    shape->sizes[dim] = static_cast<int32_t>(axis.out);
  }
  return {};
}

Status adaptive_windows(KernelContext& ctx, const Tensor& in, size_t spatial, const int64_t* sizes,
                        Pooling* pooling, Shape* shape) {
  RL_TRY(check_images(ctx, in, spatial));
  *shape = Shape(in.shape());
  bool even = true;
  for (size_t k = 0; k < spatial; ++k) {
    PoolAxis& axis = pooling->axis(k, spatial);
    const size_t dim = in.rank - spatial + k;
    axis.adaptive = true;
    axis.in = in.sizes[dim];
    axis.out = sizes[k];
    even = even && axis.out > 0 && axis.in % axis.out == 0;
    shape->sizes[dim] = static_cast<int32_t>(axis.out);
  }
  for (size_t k = 0; even && k < spatial; ++k) {
    PoolAxis& axis = pooling->axis(k, spatial);
    axis.adaptive = false;
    axis.kernel = axis.stride = axis.in / axis.out;
  }
  return {};
}

Status read_adaptive(KernelContext& ctx, const Tensor& in, size_t spatial, const EValue& size,
                     Pooling* pooling, Shape* shape) {
  RL_TRY(check_list(ctx, "output_size", size, spatial, 0));
  int64_t sizes[3];
  for (size_t k = 0; k < spatial; ++k) sizes[k] = entry(size, k);
  return adaptive_windows(ctx, in, spatial, sizes, pooling, shape);
}

Status check_pool_shape(KernelContext& ctx, const char* name, const Tensor& tensor,
                        const Shape& shape) {
  const Span<const int32_t> sizes = tensor.shape();
  if (sizes.size() == shape.rank && std::equal(sizes.begin(), sizes.end(), shape.sizes)) return {};
  return ctx.fail(Code::InvalidArgument, "%s has shape %s, but the pooling gives %s", name,
                  ShapeText(sizes).text(), ShapeText(shape.span()).text());
}

Status check_pool_gradient(KernelContext& ctx, const Tensor& self, const Shape& shape,
                           const Tensor& grad, const Tensor& result) {
  RL_TRY(check_floating(ctx, "grad_output", grad));
  RL_TRY(check_same_type(ctx, "grad_output", grad, result));
  RL_TRY(check_same_type(ctx, "self", self, result));
  return check_pool_shape(ctx, "grad_output", grad, shape);
}

}  // namespace rushlight::kernels
