// The constants of a graph as the engine's kernels read them. Each is packed when it is first asked
// for, which is when the graph is loaded, and stays.
#pragma once

#include "rushlight/backends/xnnpack/graph.h"
#include "rushlight/core/allocator.h"
#include "rushlight/core/message.h"
#include "rushlight/platform/workers.h"

namespace rushlight::xnnpack {

class Weights {
 public:
  Weights() = default;
  // `allocator` keeps what is packed.
  Status prepare(const Graph& graph, Allocator* allocator, Workers* workers, Message* message);

  // Packed floats; nullptr if memory ran out.
  Span<const float> filter_of(const Node& node);
  Span<const float> bias_of(const Node& node);
  // The elements of a constant as they are.
  const float* plain(uint32_t value);

 private:
  // What is known of a value.
  struct Entry {
    const float* plain = nullptr;
    NodeKind packed_for = NodeKind::NONE;
    uint32_t packed_flags = 0;
    Span<const float> packed;
    Span<const float> bias;
  };

  float* allocate(int64_t floats);
  Span<const float> pack(const Node& node);

  const Graph* graph_ = nullptr;
  Allocator* allocator_ = nullptr;
  Workers* workers_ = nullptr;
  Span<Entry> entries_;
};

}  // namespace rushlight::xnnpack
