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

// Elements without gaps in this order of dimensions.
engine::View dense_view(const Shape& shape, const Order& order = Order(),
                        DType dtype = DType::Float32);
Shape shape_of(const engine::View& view);
Order order_of(const engine::View& view);
// Whether elements lie alike; dimensions of one element lie anyhow.
bool same_strides(const engine::View& a, const engine::View& b);

// Dimension d of the result is dimension perm[d].
engine::View permuted(const engine::View& view, const uint8_t* perm);
// A part; the offset moves.
engine::View narrowed(const engine::View& view, size_t dim, int64_t start, int64_t size);
// Other sizes of the same elements; false if that needs a copy.
bool reshaped(const engine::View& view, const Shape& shape, engine::View* out);
// Elements repeated up to a shape that broadcast() gave.
engine::View expanded(const engine::View& view, const Shape& shape);

// Views of equal sizes with their dimensions in this order and as few as can be: at least one.
void merge(Span<engine::View> views, const Order& order);

}  // namespace rushlight::xnnpack
