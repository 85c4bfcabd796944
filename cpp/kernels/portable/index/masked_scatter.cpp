// Replaces the elements at the true positions of a mask by other elements, in order.
#include <cstring>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/walk.h"

namespace rushlight::kernels {
namespace {

// Iterates in row-major order over `shape`, to which the views are broadcast.
template <size_t kViews>
Walk<kViews> row_major(const Shape& shape, const View (&views)[kViews]) {
  Walk<kViews> walk;
  for (size_t d = shape.rank; d-- > 0;) {
    int64_t strides[kViews];
    for (size_t v = 0; v < kViews; ++v) strides[v] = views[v].strides[d];
    walk.add(shape.sizes[d], strides);
  }
  return walk;
}

}  // namespace

// masked_scatter(self, mask, source, *, out): the positions where mask is true get the elements of
// source, in row-major order.
Status masked_scatter_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const Tensor& mask = args[1]->tensor();
  const Tensor& source = args[2]->tensor();
  Tensor& out = args[3]->tensor();
  RL_TRY(check_dtype(ctx, "mask", mask, DType::Bool));
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(check_same_type(ctx, "source", source, out));
  const Tensor* tensors[] = {&self, &mask};
  Shape shape;
  RL_TRY(broadcast_shape(ctx, tensors, 2, &shape));
  int64_t total = 0;
  if (!count_elements(shape.span(), &total)) {
    return ctx.fail(Code::InvalidArgument, "self and mask broadcast to too great a shape");
  }
  int64_t wanted = 0;
  for (int64_t i = 0; i < mask.numel; ++i) wanted += mask.as<uint8_t>()[i] != 0;
  if (mask.numel > 0) wanted *= total / mask.numel;
  if (wanted > source.numel) {
    return ctx.fail(Code::InvalidArgument, "mask is true %lld times, but source has %lld elements",
                    static_cast<long long>(wanted), static_cast<long long>(source.numel));
  }
  RL_TRY(ctx.resize(out, shape.span()));
  RL_TRY(copy_view(ctx, broadcast_view(self, out), out));
  if (wanted == 0) return {};
  const View places[] = {broadcast_view(mask, out), broadcast_view(out, out)};
  const View elements[] = {broadcast_view(source, source)};
  Walk<2> place = row_major(shape, places);
  Walk<1> element = row_major(Shape(source.shape()), elements);
  const size_t size = element_size(out.dtype);
  do {
    if (mask.as<uint8_t>()[place.offset(0)] == 0) continue;
    std::memcpy(element_at(out, place.offset(1)), element_at(source, element.offset(0)), size);
    element.next();
  } while (place.next());
  return {};
}

}  // namespace rushlight::kernels
