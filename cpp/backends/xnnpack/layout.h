// Views of values: how what XNNPACK's nodes do to shapes is done to sizes and steps, without moving
// an element.
#pragma once

#include "rushlight/backends/cpu/graph_parts.h"
#include "rushlight/backends/xnnpack/graph.h"

namespace rushlight::xnnpack {

// Dimensions from the outermost in memory to the innermost.
struct Order {
  uint8_t dims[kMaxRank] = {0, 1, 2, 3, 4, 5};
};

// Elements without gaps in this order of dimensions.
cpu::View dense_view(const Shape& shape, const Order& order = Order(),
                     DType dtype = DType::Float32);
Shape shape_of(const cpu::View& view);
Order order_of(const cpu::View& view);
// Whether elements lie alike; dimensions of one element lie anyhow.
bool same_steps(const cpu::View& a, const cpu::View& b);

// Dimension d of the result is dimension perm[d].
cpu::View permuted(const cpu::View& view, const uint8_t* perm);
// A part; the offset moves.
cpu::View narrowed(const cpu::View& view, size_t dim, int64_t start, int64_t size);
// Other sizes of the same elements; false if that needs a copy.
bool reshaped(const cpu::View& view, const Shape& shape, cpu::View* out);
// Elements repeated up to a shape that broadcast() gave.
cpu::View expanded(const cpu::View& view, const Shape& shape);

// Views of equal sizes with their dimensions in this order and as few as can be: at least one.
void merge(Span<cpu::View> views, const Order& order);

}  // namespace rushlight::xnnpack
