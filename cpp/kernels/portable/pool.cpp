#include "rushlight/kernels/portable/pool.h"

#include <algorithm>

namespace rushlight::kernels {
namespace {

// Entry `axis` of a list with one entry for both axes, or two.
int64_t entry(const EValue& list, size_t axis) { return list.int_at(list.size() == 1 ? 0 : axis); }

Status check_list(KernelContext& ctx, const char* name, const EValue& list, int64_t lowest) {
  if (list.size() != 1 && list.size() != 2) {
    return ctx.fail(Code::InvalidArgument, "%s has %zu entries, but must have one or two", name,
                    list.size());
  }
  for (size_t k = 0; k < list.size(); ++k) {
    const int64_t value = list.int_at(k);
    if (value >= lowest && value <= INT32_MAX) continue;
    return ctx.fail(Code::InvalidArgument, "%s[%zu] is %lld, but must be from %lld to 2147483647",
                    name, k, static_cast<long long>(value), static_cast<long long>(lowest));
  }
  return {};
}

// The number of windows along an axis; less than 1 if not one fits.
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

int64_t PoolAxis::first_inside(int64_t o) const {
  const int64_t first = start(o);
  return first >= 0 ? first : first + (-first + dilation - 1) / dilation * dilation;
}

void PoolAxis::outputs_inside(int64_t tap, int64_t* lo, int64_t* hi) const {
  const int64_t shift = padding - tap * dilation;  // of output 0's tap, to the left
  *lo = shift > 0 ? (shift + stride - 1) / stride : 0;
  *hi = in + shift > 0 ? std::min((in + shift - 1) / stride + 1, out) : 0;
}

void Pooling::take_strides(const Tensor& in, const Tensor& out) {
  const size_t d = in.rank - size_t{3};
  n = d > 0 ? in.sizes[0] : 1;
  c = in.sizes[d];
  in_n = d > 0 ? in.strides[0] : 0;
  in_c = in.strides[d];
  in_h = in.strides[d + 1];
  in_w = in.strides[d + 2];
  out_n = d > 0 ? out.strides[0] : 0;
  out_c = out.strides[d];
  out_h = out.strides[d + 1];
  out_w = out.strides[d + 2];
}

Status check_images(KernelContext& ctx, const Tensor& in) {
  bool fits = in.rank == 3 || in.rank == 4;
  for (size_t k = 1; fits && k <= 3; ++k) fits = in.sizes[in.rank - k] > 0;
  if (!fits) {
    return ctx.fail(Code::InvalidArgument,
                    "self has shape %s, but must be [N, C, H, W] or [C, H, W] with no size but N "
                    "being 0",
                    ShapeText(in.shape()).text());
  }
  const int64_t pixels = static_cast<int64_t>(in.sizes[in.rank - 1]) * in.sizes[in.rank - 2];
  if (pixels <= INT32_MAX) return {};
  return ctx.fail(Code::NotSupported, "self has %lld pixels; at most 2147483647 are supported",
                  static_cast<long long>(pixels));
}

Status read_pooling(KernelContext& ctx, const Tensor& in, const EValue& kernel,
                    const EValue& stride, const EValue& padding, const EValue* dilation,
                    bool ceil_mode, Pooling* pooling, Shape* shape) {
  RL_TRY(check_images(ctx, in));
  RL_TRY(check_list(ctx, "kernel_size", kernel, 1));
  if (stride.size() > 0) RL_TRY(check_list(ctx, "stride", stride, 1));
  RL_TRY(check_list(ctx, "padding", padding, 0));
  if (dilation != nullptr) RL_TRY(check_list(ctx, "dilation", *dilation, 1));
  *shape = Shape(in.shape());
  PoolAxis* const axes[] = {&pooling->h, &pooling->w};
  for (size_t k = 0; k < 2; ++k) {
    PoolAxis& axis = *axes[k];
    const size_t dim = in.rank - 2 + k;
    axis.in = in.sizes[dim];
    axis.kernel = entry(kernel, k);
    axis.stride = entry(stride.size() > 0 ? stride : kernel, k);
    axis.padding = entry(padding, k);
    if (dilation != nullptr) axis.dilation = entry(*dilation, k);
    if (axis.padding > axis.kernel / 2) {
      return ctx.fail(
          Code::InvalidArgument,
          "padding is %lld along dimension %zu, but at most half of kernel_size %lld is "
          "allowed",
          static_cast<long long>(axis.padding), dim, static_cast<long long>(axis.kernel));
    }
    axis.out = count_windows(axis, ceil_mode);
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

}  // namespace rushlight::kernels
