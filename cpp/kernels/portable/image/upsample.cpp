#include "rushlight/kernels/portable/image/upsample.h"

#include <algorithm>

#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"

namespace rushlight::kernels {
namespace {

constexpr const char* kLayouts[] = {"[N, C, W]", "[N, C, H, W]", "[N, C, D, H, W]"};
constexpr const char* kCounts[] = {"one", "two", "three"};

// The arguments of a call, not yet checked.
struct Request {
  size_t dims = 2;
  double sizes[3] = {};
  double factors[3] = {};
};

Status check_input(KernelContext& ctx, const Tensor& in, size_t dims) {
  bool fits = in.rank == dims + 2;
  for (size_t d = 1; fits && d < in.rank; ++d) fits = in.sizes[d] > 0;
  if (fits) return {};
  return ctx.fail(Code::InvalidArgument,
                  "input has shape %s, but must be %s with no size but N being 0",
                  ShapeText(in.shape()).text(), kLayouts[dims - 1]);
}

Status check_count(KernelContext& ctx, const char* name, const EValue& list, size_t dims) {
  if (list.size() == dims) return {};
  return ctx.fail(Code::InvalidArgument, "%s has %zu entries, but must have %s", name, list.size(),
                  kCounts[dims - 1]);
}

Status set_sizes(KernelContext& ctx, const Tensor& in, const Request& request, Tensor& out,
                 UpsampleAxis* const* axes) {
  Shape shape(in.shape());
  for (size_t k = 0; k < request.dims; ++k) {
    const double size = request.sizes[k];
    if (!(size >= 1.0 && size < 2147483648.0)) {
      return ctx.fail(Code::InvalidArgument,
                      "the output would have size %g in dimension %zu; a size is from 1 to "
                      "2147483647",
                      size, k + 2);
    }
    axes[k]->in = in.sizes[k + 2];
    axes[k]->out = static_cast<int64_t>(size);
    axes[k]->factor = request.factors[k];
    shape.sizes[k + 2] = static_cast<int32_t>(axes[k]->out);
  }
  return ctx.resize(out, shape.span());
}

Status prepare(KernelContext& ctx, const Tensor& in, const Request& request, Tensor& out,
               Upsampling* u) {
  UpsampleAxis* const all[] = {&u->d, &u->h, &u->w};
  UpsampleAxis* const* axes = all + (3 - request.dims);
  RL_TRY(set_sizes(ctx, in, request, out, axes));
  for (size_t k = 0; k < request.dims; ++k) {
    axes[k]->in_stride = in.strides[k + 2];
    axes[k]->out_stride = out.strides[k + 2];
  }
  u->n = in.sizes[0];
  u->c = in.sizes[1];
  u->in_n = in.strides[0];
  u->in_c = in.strides[1];
  u->out_n = out.strides[0];
  u->out_c = out.strides[1];
  return {};
}

}  // namespace

bool Upsampling::channels_last() const {
  const int64_t sizes[] = {c, w.in, h.in, d.in, n};
  const int64_t strides[] = {in_c, w.in_stride, h.in_stride, d.in_stride, in_n};
  int64_t inner = 1;
  for (size_t k = 0; k < 5; ++k) {
    if (sizes[k] != 1 && strides[k] != inner) return false;
    inner *= sizes[k];
  }
  return true;
}

void Upsampling::ignore_factors_of_kept_sizes() {
  for (UpsampleAxis* axis : {&d, &h, &w}) {
    if (axis->in == axis->out) axis->factor = 0.0;
  }
}

int64_t Upsampling::plane_grain() const {
  constexpr int64_t kElements = 1 << 14;
  return std::max<int64_t>(1, kElements / (d.out * h.out * w.out));
}

Status read_upsampling(KernelContext& ctx, const Tensor& in, const EValue& output_size,
                       const EValue& scale_factors, Tensor& out, Upsampling* upsampling) {
  Request request;
  RL_TRY(check_input(ctx, in, request.dims));
  RL_TRY(check_same_type(ctx, "input", in, out));
  if (output_size.is_none() == scale_factors.is_none()) {
    return ctx.fail(Code::InvalidArgument,
                    "one of output_size and scale_factors must be given, and the other be None");
  }
  const bool by_factor = output_size.is_none();
  RL_TRY(by_factor ? check_count(ctx, "scale_factors", scale_factors, request.dims)
                   : check_count(ctx, "output_size", output_size, request.dims));
  for (size_t k = 0; k < request.dims; ++k) {
    request.factors[k] = by_factor ? scale_factors.double_at(k) : 0.0;
    request.sizes[k] = by_factor ? static_cast<double>(in.sizes[k + 2]) * request.factors[k]
                                 : static_cast<double>(output_size.int_at(k));
  }
  return prepare(ctx, in, request, out, upsampling);
}

Status read_upsampling_to(KernelContext& ctx, const Tensor& in, const EValue& output_size,
                          EValue* const* scales, size_t dims, Tensor& out, Upsampling* upsampling) {
  Request request;
  request.dims = dims;
  RL_TRY(check_input(ctx, in, dims));
  RL_TRY(check_same_type(ctx, "input", in, out));
  RL_TRY(check_count(ctx, "output_size", output_size, dims));
  for (size_t k = 0; k < dims; ++k) {
    request.sizes[k] = static_cast<double>(output_size.int_at(k));
    request.factors[k] = double_or(*scales[k], 0.0);
  }
  return prepare(ctx, in, request, out, upsampling);
}

}  // namespace rushlight::kernels
