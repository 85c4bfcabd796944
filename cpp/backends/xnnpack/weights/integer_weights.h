// Constants of integer products, in the layout of the engine's kernels. They are made when a node
// is first translated, at load, and kept.
#pragma once

#include "rushlight/backends/xnnpack/payload/graph.h"
#include "rushlight/backends/xnnpack/weights/pack.h"
#include "rushlight/core/allocator.h"

namespace rushlight::xnnpack {

// Arrays with one element for each column are filled up with zeros to whole panels.
struct IntegerWeights {
  bool is_ready = false;
  int32_t bits = 8;
  Span<const uint8_t> panels;
  int64_t n_columns = 0;
  // For static products: the start of each sum, and the multiplier that requantizes it. For dynamic
  // products: the sums of weights, and their scales.
  const int32_t* sums = nullptr;
  const float* scales = nullptr;
  // With groups, instead: bfloat16 scales for each panel, and sums of scale * weight.
  int64_t group_size = 0;
  const uint16_t* group_scales = nullptr;
  int64_t n_group_scales = 0;
  const float* shares = nullptr;
};

// Whether the engine computes a node with integers alone.
bool is_static_product(const Node& node, const Graph& graph);
// Whether a node's input is quantized row by row at run time.
bool is_dynamic_product(const Node& node, const Graph& graph);

// False if memory ran out.
bool make_weights(const Node& node, const Graph& graph, Allocator* allocator, IntegerWeights* to);

// Dequantizes a constant.
void dequantize(const Value& value, float* to);

}  // namespace rushlight::xnnpack
