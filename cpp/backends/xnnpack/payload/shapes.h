// The shapes of a graph's values, from those of its inputs: what XNNPACK calls reshaping.
#pragma once

#include "rushlight/backends/xnnpack/payload/graph.h"
#include "rushlight/core/message.h"
#include "rushlight/core/status.h"
#include "rushlight/engine/types/parameters.h"

namespace rushlight::xnnpack {

// Sets the shapes of all values that nodes write. `shapes` has one for each value; the caller sets
// those of inputs and constants. Checks every parameter that concerns shapes: kernels and strides
// are not 0, paddings and offsets are small, permutations are valid, and products of sizes do not
// overflow. DelegateInvalidCompatibility with the reason; `failed` is the node then.
Status infer_shapes(const Graph& graph, Span<Shape> shapes, Message& message, size_t* failed);

// The shape of an elementwise operator's result; false if the operands' shapes do not fit each
// other.
bool broadcast(const Shape& a, const Shape& b, Shape* out);
int64_t numel_of(const Shape& shape);  // -1 if there are too many
bool same_shape(const Shape& a, const Shape& b);

// The window that a convolution or a pool slides over images. XNNPACK's dilation of 0 means 1.
engine::Window window_of(fb::xnnpack::Convolution table);
engine::Window window_of(fb::xnnpack::Pooling table);

}  // namespace rushlight::xnnpack
