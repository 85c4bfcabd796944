// Divides an image into square tiles.
#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"

namespace rushlight::kernels {

// tile_crop(input, tile_size, *, out): [C, H, W] becomes [tiles, C, tile_size, tile_size], one row
// of tiles after the other.
Status tile_crop_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  const int64_t size = args[1]->to_int();
  Tensor& out = args[2]->tensor();
  RL_TRY(check_rank(ctx, "input", in, 3));
  RL_TRY(check_rank(ctx, "out", out, 4));
  RL_TRY(check_same_type(ctx, "input", in, out));
  if (size <= 0 || in.sizes[1] % size != 0 || in.sizes[2] % size != 0) {
    return ctx.fail(Code::InvalidArgument,
                    "tile_size is %lld, but must divide height and width of input, whose shape is "
                    "%s",
                    static_cast<long long>(size), ShapeText(in.shape()).text());
  }
  const int64_t down = in.sizes[1] / size;
  const int64_t across = in.sizes[2] / size;
  Shape shape;
  if (!shape.push(down * across) || !shape.push(in.sizes[0]) || !shape.push(size) ||
      !shape.push(size)) {
    return ctx.fail(Code::InvalidArgument, "input of shape %s has too many tiles",
                    ShapeText(in.shape()).text());
  }
  RL_TRY(ctx.resize(out, shape.span()));
  if (out.numel == 0) return {};
  CopyBlock block;
  block.push(down, size * in.strides[1], across * out.strides[0]);
  block.push(across, size * in.strides[2], out.strides[0]);
  block.push(in.sizes[0], in.strides[0], out.strides[1]);
  block.push(size, in.strides[1], out.strides[2]);
  block.push(size, in.strides[2], out.strides[3]);
  strided_copy(ctx, in.data, out.data, block, element_size(in.dtype));
  return {};
}

}  // namespace rushlight::kernels
