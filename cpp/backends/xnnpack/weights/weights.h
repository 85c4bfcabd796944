// The constants of a graph in the layout of the engine's kernels. Each is packed, or taken from a
// file of packed weights, when it is first asked for, at load, and kept.
#pragma once

#include "rushlight/backends/xnnpack/payload/graph.h"
#include "rushlight/backends/xnnpack/weights/integer_weights.h"
#include "rushlight/backends/xnnpack/weights/pack.h"
#include "rushlight/backends/xnnpack/weights/packed_cache.h"
#include "rushlight/delegate/backend.h"

namespace rushlight::xnnpack {

// The layout of a filter, without its data.
Filter filter_of_convolution(const Node& node);
Filter filter_of_layer(const Node& node, const Shape& shape);

class Weights {
 public:
  Weights() = default;
  // Packed weights lie in init's allocator. Named data that was packed is released.
  Status prepare(const Graph& graph, const BackendInit& init, PackedCache* cache);

  // Packed floats; nullptr if memory ran out.
  Span<const float> filter_of(const Node& node);
  // How the filter of a dense convolution is packed; the first call decides.
  bool is_winograd(const Node& node, bool suits);
  Span<const float> bias_of(const Node& node);
  // The elements of a constant as float32.
  const float* plain(uint32_t value);
  // The constants of a static or dynamic integer product; nullptr if memory ran out.
  const IntegerWeights* integers_of(const Node& node);

 private:
  // The packed form of a value.
  struct Entry {
    const float* plain = nullptr;
    NodeKind packed_for = NodeKind::NONE;
    uint32_t packed_flags = 0;
    bool is_winograd = false;
    Span<const float> packed;
    Span<const float> bias;
  };

  float* allocate(int64_t floats);
  Span<const float> pack(const Node& node);
  void pack_filter(const Node& node, const Filter& filter, float* to);
  PackedKey key_of(uint32_t value, Span<const int64_t> how) const;

  const Graph* graph_ = nullptr;
  Allocator* allocator_ = nullptr;
  const NamedData* named_data_ = nullptr;
  Workers* workers_ = nullptr;
  PackedCache* cache_ = nullptr;
  Span<Entry> entries_;
  Span<IntegerWeights> integers_;  // of nodes
};

}  // namespace rushlight::xnnpack
