#include "rushlight/backends/xnnpack/translate/layout.h"

#include <algorithm>

namespace rushlight::xnnpack {

using engine::View;

View dense_view(const Shape& shape, const Order& order, DType dtype) {
  View view;
  view.dtype = dtype;
  view.rank = static_cast<uint8_t>(shape.rank);
  int64_t stride = 1;
  for (size_t n = shape.rank; n-- > 0;) {
    const size_t d = order.dims[n];
    view.sizes[d] = shape.sizes[d];
    view.strides[d] = stride;
    stride *= std::max<int64_t>(shape.sizes[d], 1);
  }
  engine::measure(view);
  return view;
}

Shape shape_of(const View& view) {
  Shape shape;
  shape.rank = view.rank;
  std::copy(view.sizes, view.sizes + view.rank, shape.sizes);
  return shape;
}

// Dimensions of one element take the next inner dimension's stride, so that they do not change the
// order.
Order order_of(const View& view) {
  int64_t strides[kMaxRank];
  for (size_t d = view.rank; d-- > 0;) {
    const bool is_one = view.sizes[d] == 1 && d + size_t{1} < view.rank;
    strides[d] = is_one ? strides[d + 1] : view.strides[d];
  }
  Order order;
  std::stable_sort(order.dims, order.dims + view.rank,
                   [&](uint8_t a, uint8_t b) { return strides[a] > strides[b]; });
  return order;
}

bool same_strides(const View& a, const View& b) {
  if (a.numel == 0) return true;
  for (size_t d = 0; d < a.rank; ++d) {
    if (a.sizes[d] != 1 && a.strides[d] != b.strides[d]) return false;
  }
  return true;
}

View permuted(const View& view, const uint8_t* perm) {
  View out = view;
  for (size_t d = 0; d < view.rank; ++d) {
    out.sizes[d] = view.sizes[perm[d]];
    out.strides[d] = view.strides[perm[d]];
  }
  return out;
}

View narrowed(const View& view, size_t dim, int64_t start, int64_t size) {
  View out = view;
  out.sizes[dim] = size;
  out.offset += static_cast<uint64_t>(start * view.strides[dim]) * element_size(view.dtype);
  engine::measure(out);
  return out;
}

// Runs of dimensions that are dense neighbours are split into the new dimensions.
bool reshaped(const View& view, const Shape& shape, View* out) {
  *out = dense_view(shape, Order(), view.dtype);
  out->offset = view.offset;
  engine::measure(*out);
  if (view.numel == 0) return true;
  size_t to = shape.rank;  // dimensions to..rank-1 of the result have their strides
  size_t last = view.rank;
  while (last > 0) {
    size_t first = last;
    int64_t size = 1;
    int64_t stride = 1;
    while (first > 0) {  // the longest run that ends at `last`
      int64_t longer = 0;
      int64_t its_stride = 0;
      if (!engine::merge_dims(view, first - 1, last, &longer, &its_stride)) break;
      --first;
      size = longer;
      stride = its_stride;
    }
    for (int64_t taken = 1; taken < size;) {
      if (to == 0) return false;
      --to;
      out->strides[to] = stride * taken;
      taken *= shape.sizes[to];
      if (taken > size || size % taken != 0) return false;
    }
    last = first;
  }
  engine::measure(*out);
  return true;
}

View expanded(const View& view, const Shape& shape) {
  View out = view;
  const size_t shift = shape.rank - view.rank;
  out.rank = static_cast<uint8_t>(shape.rank);
  for (size_t d = 0; d < shape.rank; ++d) {
    const bool is_repeated = d < shift || view.sizes[d - shift] != shape.sizes[d];
    out.sizes[d] = shape.sizes[d];
    out.strides[d] = is_repeated ? 0 : view.strides[d - shift];
  }
  engine::measure(out);
  return out;
}

void merge(Span<View> views, const Order& order) {
  for (View& view : views) view = permuted(view, order.dims);
  size_t rank = 0;
  for (size_t d = 0; d < views[0].rank; ++d) {
    const int64_t size = views[0].sizes[d];
    if (size == 1) continue;
    bool joins = rank > 0;
    for (const View& view : views) {
      joins = joins && view.strides[rank - 1] == view.strides[d] * size;
    }
    if (!joins) ++rank;
    for (View& view : views) {
      view.sizes[rank - 1] = joins ? view.sizes[rank - 1] * size : size;
      view.strides[rank - 1] = view.strides[d];
    }
  }
  for (View& view : views) {
    view.rank = static_cast<uint8_t>(std::max<size_t>(rank, 1));
    if (rank == 0) view.sizes[0] = view.strides[0] = 1;
  }
}

}  // namespace rushlight::xnnpack
