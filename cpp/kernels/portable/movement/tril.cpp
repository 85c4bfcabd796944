// The lower triangle of the last two dimensions.
#include <algorithm>
#include <cstring>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/reduction/reduce.h"

namespace rushlight::kernels {
namespace {

// Zeroes n elements of `size` bytes that are `stride` bytes apart.
void clear(uint8_t* item, int64_t n, int64_t stride, size_t size) {
  if (stride == static_cast<int64_t>(size)) {
    std::memset(item, 0, static_cast<size_t>(n) * size);
    return;
  }
  for (; n > 0; --n) {
    std::memset(item, 0, size);
    item += stride;
  }
}

}  // namespace

// tril(self, diagonal, out): copies all of self, then clears what is above the diagonal.
Status tril_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[2]->tensor();
  if (in.rank < 2) {
    return ctx.fail(Code::InvalidArgument,
                    "self has sizes %s, but must have two dimensions or more",
                    ShapeText(in.shape()).text());
  }
  RL_TRY(check_dtype(ctx, "out", out, in.dtype));
  RL_TRY(ctx.resize_like(out, in));
  RL_TRY(copy_view(ctx, broadcast_view(in, out), out));
  if (out.numel == 0) return {};
  const size_t row_dim = out.rank - 2;
  const size_t column_dim = out.rank - 1;
  const int64_t rows = out.sizes[row_dim];
  const int64_t columns = out.sizes[column_dim];
  // A diagonal far outside of the matrix is equivalent to one just outside.
  const int64_t diagonal = std::min(std::max(args[1]->to_int(), -rows), columns);
  const int64_t column_stride = out.strides[column_dim];
  const int64_t size = static_cast<int64_t>(element_size(out.dtype));
  Nest nest;
  for (size_t d = row_dim; d-- > 0;) nest.add(out.sizes[d], out.strides[d], 0);
  nest.rewind();
  do {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t first = std::max<int64_t>(i + diagonal + 1, 0);
      const int64_t offset = nest.offset() + i * out.strides[row_dim] + first * column_stride;
      if (first >= columns) break;
      clear(out.as<uint8_t>() + offset * size, columns - first, column_stride * size,
            static_cast<size_t>(size));
    }
  } while (nest.next());
  return {};
}

}  // namespace rushlight::kernels
