// Which nodes become one operator of the engine: chains of elementwise nodes, with the product or
// convolution whose epilogue they become.
#pragma once

#include "rushlight/backends/xnnpack/payload/graph.h"
#include "rushlight/core/allocator.h"

namespace rushlight::xnnpack {

bool is_elementwise(NodeKind kind);

// A cluster's nodes are in the order of the graph; the last one is the root. Results other than the
// root's are used only within the cluster and have the root's sizes.
class Clusters {
 public:
  // False if memory ran out.
  bool find(const Graph& graph, Span<const Shape> shapes, Allocator* allocator);

  // The node at which the cluster of node `i` is computed; usually `i` itself.
  uint32_t root(uint32_t i) const { return entries_[i].root; }
  // The next member of a cluster, from the first to the root; kNone after the root.
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
  Span<uint32_t> users_;  // for each value: the cluster that has all its uses
};

}  // namespace rushlight::xnnpack
