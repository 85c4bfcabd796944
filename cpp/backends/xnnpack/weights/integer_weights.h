// Constants of products of integers, as the engine's kernels read them. Made when a node is
// translated first, which is when the graph is loaded, and kept.
#pragma once

#include "rushlight/backends/xnnpack/payload/graph.h"
#include "rushlight/backends/xnnpack/weights/pack.h"
#include "rushlight/core/allocator.h"

namespace rushlight::xnnpack {

// What belongs to columns is filled up with zeros to whole panels.
struct IntegerWeights {
  bool is_ready = false;
  int32_t bits = 8;
  Span<const uint8_t> panels;
  int64_t n_columns = 0;
  // Of static products: what sums start from, and what makes them integers of the result. Of
  // dynamic ones: sums of weights, and their scales.
  const int32_t* sums = nullptr;
  const float* scales = nullptr;
  // Of groups, instead: scales as bfloat16 for each panel, and sums of scale * weight.
  int64_t group_size = 0;
  const uint16_t* group_scales = nullptr;
  int64_t n_group_scales = 0;
  const float* shares = nullptr;
};

// Whether a node is one that the engine computes with integers alone.
bool is_static_product(const Node& node, const Graph& graph);
// Whether its input is quantised row by row when it runs.
bool is_dynamic_product(const Node& node, const Graph& graph);

// False if memory ran out.
bool make_weights(const Node& node, const Graph& graph, Allocator* allocator, IntegerWeights* to);

// The elements of a constant of integers as what they stand for.
void dequantize(const Value& value, float* to);

}  // namespace rushlight::xnnpack
