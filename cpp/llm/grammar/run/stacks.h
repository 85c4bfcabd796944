// Stacks of returns from calls, many of them sharing their lower parts. A node stands for a set of
// stacks: by the return at the top, a node for all that may lie below it. Equal sets are the same
// node, so that two ways to read a text, however many there are, become one where they agree.
//
// A stack is as deep as the text nests, which may be as long as the context: nothing here recurses.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rushlight/core/span.h"

namespace rushlight::llm::grammar {

struct Link {
  uint32_t state;   // where the caller goes on
  uint32_t parent;  // the stacks below
  uint64_t count;   // of the caller
};

class Stacks {
 public:
  static constexpr uint32_t kBottom = 0;  // the set of the empty stack alone

  Stacks() { clear(); }
  void clear();

  uint32_t push(uint32_t state, uint64_t count, uint32_t parent);
  uint32_t unite(uint32_t a, uint32_t b) { return a == b ? a : united(a, b); }
  Span<const Link> links(uint32_t node) const {
    return {links_.data() + nodes_[node].first, nodes_[node].size};
  }
  bool has_bottom(uint32_t node) const { return nodes_[node].has_bottom; }
  size_t size() const { return nodes_.size(); }
  size_t bytes() const;

  // Copies the stacks of `node` from `other`; `copied` has what was copied before.
  uint32_t copy(const Stacks& other, uint32_t node, std::unordered_map<uint32_t, uint32_t>* copied);

 private:
  struct Node {
    uint32_t first, size;
    bool has_bottom;
  };
  using Pair = std::pair<uint32_t, uint32_t>;

  uint32_t united(uint32_t a, uint32_t b);
  // False if nodes below these must be united first, which are added to open_.
  bool unite_links(Pair pair);
  // The node of links_ from `first` on, which are dropped if it is known.
  uint32_t intern(size_t first, bool has_bottom);

  std::vector<Link> links_;
  std::vector<Node> nodes_;
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
  std::unordered_map<uint64_t, uint32_t> united_;
  std::vector<Pair> open_;    // to be united
  std::vector<Link> merged_;  // of a union
};

}  // namespace rushlight::llm::grammar
