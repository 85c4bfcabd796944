// The constants of a graph as the engine's kernels read them. Each is packed, or found in a file of
// packed ones, when it is first asked for, which is when the graph is loaded, and stays.
#pragma once

#include "rushlight/backends/xnnpack/payload/graph.h"
#include "rushlight/backends/xnnpack/weights/integer_weights.h"
#include "rushlight/backends/xnnpack/weights/pack.h"
#include "rushlight/backends/xnnpack/weights/packed_cache.h"
#include "rushlight/delegate/backend.h"

namespace rushlight::xnnpack {

// A filter without its data.
Filter filter_of_convolution(const Node& node);
Filter filter_of_layer(const Node& node, const Shape& shape);

class Weights {
 public:
  Weights() = default;
  // init's allocator keeps what is packed. What was packed of the named data is given back.
  Status prepare(const Graph& graph, const BackendInit& init, PackedCache* cache);

  // Packed floats; nullptr if memory ran out.
  Span<const float> filter_of(const Node& node);
  // How the filter of a dense convolution is packed: that is decided when it is asked for first.
  bool is_winograd(const Node& node, bool suits);
  Span<const float> bias_of(const Node& node);
  // The elements of a constant as float32.
  const float* plain(uint32_t value);
  // Of a static or dynamic product of integers; nullptr if memory ran out.
  const IntegerWeights* integers_of(const Node& node);

 private:
  // What is known of a value.
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
