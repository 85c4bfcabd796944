// The shapes of a graph's values, from those of its inputs: what XNNPACK calls reshaping.
#pragma once

#include "rushlight/backends/xnnpack/payload/graph.h"
#include "rushlight/core/message.h"
#include "rushlight/core/status.h"
#include "rushlight/engine/types/parameters.h"

namespace rushlight::xnnpack {

// Sets the shape of all that nodes write; `shapes` has one for each value, those of inputs and
// constants are given. Everything that the parameters of nodes say of shapes is checked: kernels
// and strides are not 0, paddings and offsets are small, permutations are some, no product of sizes
// overflows. DelegateInvalidCompatibility with the reason; `failed` is the node then.
Status infer_shapes(const Graph& graph, Span<Shape> shapes, Message& message, size_t* failed);

// The shape of elementwise operators' results; false if these do not go together.
bool broadcast(const Shape& a, const Shape& b, Shape* out);
int64_t numel_of(const Shape& shape);  // -1 if there are too many
bool same_shape(const Shape& a, const Shape& b);

// What a convolution or a pool slides over images. XNNPACK's dilation of 0 is 1.
engine::Window window_of(fb::xnnpack::Convolution table);
engine::Window window_of(fb::xnnpack::Pooling table);

}  // namespace rushlight::xnnpack
