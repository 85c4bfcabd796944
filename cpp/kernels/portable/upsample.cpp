#include "rushlight/kernels/portable/upsample.h"

#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/strided_copy.h"

namespace rushlight::kernels {
namespace {

Status check_input(KernelContext& ctx, const Tensor& in) {
  if (in.rank == 4 && in.sizes[1] > 0 && in.sizes[2] > 0 && in.sizes[3] > 0) return {};
  return ctx.fail(Code::InvalidArgument,
                  "input has shape %s, but must be [N, C, H, W] with no size but N being 0",
                  ShapeText(in.shape()).text());
}

Status check_count(KernelContext& ctx, const char* name, const EValue& list) {
  if (list.size() == 2) return {};
  return ctx.fail(Code::InvalidArgument, "%s has %zu entries, but must have two", name,
                  list.size());
}

Status out_of_range(KernelContext& ctx, size_t axis, double size) {
  return ctx.fail(Code::InvalidArgument,
                  "the output would have size %g in dimension %zu; a size is from 1 to 2147483647",
                  size, axis + 2);
}

}  // namespace

Status read_upsampling(KernelContext& ctx, const Tensor& in, const EValue& output_size,
                       const EValue& scale_factors, Tensor& out, Upsampling* upsampling) {
  RL_TRY(check_input(ctx, in));
  RL_TRY(check_same_type(ctx, "input", in, out));
  if (output_size.is_none() == scale_factors.is_none()) {
    return ctx.fail(Code::InvalidArgument,
                    "one of output_size and scale_factors must be given, and the other be None");
  }
  if (output_size.is_none()) RL_TRY(check_count(ctx, "scale_factors", scale_factors));
  if (scale_factors.is_none()) RL_TRY(check_count(ctx, "output_size", output_size));
  Shape shape(in.shape());
  UpsampleAxis* const axes[] = {&upsampling->h, &upsampling->w};
  for (size_t k = 0; k < 2; ++k) {
    UpsampleAxis& axis = *axes[k];
    axis.in = in.sizes[k + 2];
    if (output_size.is_none()) {
      axis.factor = scale_factors.double_at(k);
      const double size = static_cast<double>(axis.in) * axis.factor;
      if (!(size >= 1.0 && size < 2147483648.0)) return out_of_range(ctx, k, size);
      axis.out = static_cast<int64_t>(size);
    } else {
      axis.out = output_size.int_at(k);
      if (axis.out < 1 || axis.out > INT32_MAX) {
        return out_of_range(ctx, k, static_cast<double>(axis.out));
      }
    }
    shape.sizes[k + 2] = static_cast<int32_t>(axis.out);
  }
  RL_TRY(ctx.resize(out, shape.span()));
  for (size_t k = 0; k < 2; ++k) {
    axes[k]->in_stride = in.strides[k + 2];
    axes[k]->out_stride = out.strides[k + 2];
  }
  upsampling->n = in.sizes[0];
  upsampling->c = in.sizes[1];
  upsampling->in_n = in.strides[0];
  upsampling->in_c = in.strides[1];
  upsampling->out_n = out.strides[0];
  upsampling->out_c = out.strides[1];
  return {};
}

}  // namespace rushlight::kernels
