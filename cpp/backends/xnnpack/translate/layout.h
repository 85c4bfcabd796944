// Views of values: what XNNPACK's nodes do to shapes, done to sizes and strides without moving
// an element.
#pragma once

#include "rushlight/backends/xnnpack/payload/graph.h"
#include "rushlight/engine/types/graph_parts.h"

namespace rushlight::xnnpack {

// Dimensions from the outermost in memory to the innermost.
struct Order {
  uint8_t dims[kMaxRank] = {0, 1, 2, 3, 4, 5};
};

// A dense view with this order of dimensions.
engine::View dense_view(const Shape& shape, const Order& order = Order(),
                        DType dtype = DType::Float32);
Shape shape_of(const engine::View& view);
Order order_of(const engine::View& view);
// Whether strides are equal, except in dimensions of one element.
bool same_strides(const engine::View& a, const engine::View& b);

// Dimension d of the result is dimension perm[d].
engine::View permuted(const engine::View& view, const uint8_t* perm);
// A part of a dimension; the offset changes with it.
engine::View narrowed(const engine::View& view, size_t dim, int64_t start, int64_t size);
// The same elements with other sizes; false if that needs a copy.
bool reshaped(const engine::View& view, const Shape& shape, engine::View* out);
// The elements broadcast to a shape from broadcast().
engine::View expanded(const engine::View& view, const Shape& shape);

// Permutes the dimensions of views of equal sizes, and merges as many as possible; at least one
// remains.
void merge(Span<engine::View> views, const Order& order);

}  // namespace rushlight::xnnpack
