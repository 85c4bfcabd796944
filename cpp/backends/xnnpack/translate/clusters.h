// Which nodes become one operator of the engine: chains of elementwise nodes, and the product or
// convolution whose results they go over.
#pragma once

#include "rushlight/backends/xnnpack/payload/graph.h"
#include "rushlight/core/allocator.h"

namespace rushlight::xnnpack {

bool is_elementwise(NodeKind kind);

// Nodes in the order of the graph; the last one, which the others lead to, is the root. All results
// but the root's are used within the cluster alone, and have its sizes.
class Clusters {
 public:
  // False if memory ran out.
  bool find(const Graph& graph, Span<const Shape> shapes, Allocator* allocator);

  // The node in whose place the cluster of node `i` is computed: itself, for most.
  uint32_t root(uint32_t i) const { return entries_[i].root; }
  // Members from the first to the root; kNone behind it.
  uint32_t first(uint32_t root) const { return entries_[root].head; }
  uint32_t next(uint32_t i) const { return entries_[i].next; }
  // The member that is a product or convolution; kNone if there is none.
  uint32_t anchor(uint32_t root) const { return entries_[root].anchor; }

 private:
  struct Entry {
    uint32_t root = kNone;
    uint32_t head = kNone;
    uint32_t next = kNone;
    uint32_t anchor = kNone;
  };

  void place(uint32_t i);
  bool fits(uint32_t i, uint32_t root) const;
  void use(uint32_t value, uint32_t root);

  const Graph* graph_ = nullptr;
  Span<const Shape> shapes_;
  Span<Entry> entries_;
  Span<uint32_t> users_;  // of each value: the cluster that all its uses lie in
};

}  // namespace rushlight::xnnpack
