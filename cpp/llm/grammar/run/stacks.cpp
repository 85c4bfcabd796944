#include "rushlight/llm/grammar/run/stacks.h"

#include <algorithm>

#include "rushlight/llm/grammar/run/hash.h"

namespace rushlight::llm::grammar {

void Stacks::clear() {
  links_.clear();
  nodes_.assign(1, {0, 0, 0, true});
  by_hash_.clear();
  united_.clear();
}

size_t Stacks::bytes() const {
  // A node of a hash table takes some 40 bytes.
  return links_.size() * sizeof(Link) + nodes_.size() * (sizeof(Node) + 40) + united_.size() * 40;
}

uint32_t Stacks::intern(size_t first, bool has_bottom) {
  const size_t size = links_.size() - first;
  uint64_t hash = mix(size, has_bottom ? 1 : 0);
  uint32_t depth = 0;
  for (size_t i = first; i < links_.size(); ++i) {
    const Link& link = links_[i];
    hash = mix(mix(hash, uint64_t{link.state} << 32 | link.parent), link.count);
    depth = std::max(depth, nodes_[link.parent].depth + 1);
  }
  const auto same = [&](const Link& a, const Link& b) {
    return a.state == b.state && a.parent == b.parent && a.count == b.count;
  };
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    const Node& node = nodes_[at->second];
    if (node.size != size || node.has_bottom != has_bottom) continue;
    const Link* known = links_.data() + node.first;
    if (!std::equal(known, known + size, links_.data() + first, same)) continue;
    links_.resize(first);
    return at->second;
  }
  const auto id = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({static_cast<uint32_t>(first), static_cast<uint32_t>(size), depth, has_bottom});
  by_hash_.emplace(hash, id);
  return id;
}

uint32_t Stacks::push(uint32_t state, uint64_t count, uint32_t parent) {
  if (nodes_[parent].depth >= kMaxDepth) return kTooDeep;
  links_.push_back({state, parent, count});
  return intern(links_.size() - 1, false);
}

uint32_t Stacks::unite(uint32_t a, uint32_t b) {
  if (a == b) return a;
  if (a > b) std::swap(a, b);
  const uint64_t key = uint64_t{a} << 32 | b;
  const auto known = united_.find(key);
  if (known != united_.end()) return known->second;
  // Sorted by (state, count); links of both become one over the union of what lies below.
  std::vector<Link> merged;
  const std::vector<Link> in_a(links(a).begin(), links(a).end());
  const std::vector<Link> in_b(links(b).begin(), links(b).end());
  const auto before = [](const Link& x, const Link& y) {
    return x.state != y.state ? x.state < y.state : x.count < y.count;
  };
  size_t i = 0, j = 0;
  while (i < in_a.size() || j < in_b.size()) {
    if (j == in_b.size() || (i < in_a.size() && before(in_a[i], in_b[j]))) {
      merged.push_back(in_a[i++]);
    } else if (i == in_a.size() || before(in_b[j], in_a[i])) {
      merged.push_back(in_b[j++]);
    } else {
      merged.push_back(in_a[i]);
      merged.back().parent = unite(in_a[i++].parent, in_b[j++].parent);
    }
  }
  const bool has_bottom = nodes_[a].has_bottom || nodes_[b].has_bottom;
  const size_t first = links_.size();
  links_.insert(links_.end(), merged.begin(), merged.end());
  const uint32_t node = intern(first, has_bottom);
  united_.emplace(key, node);
  return node;
}

uint32_t Stacks::copy(const Stacks& other, uint32_t node,
                      std::unordered_map<uint32_t, uint32_t>* copied) {
  if (node == kBottom) return kBottom;
  const auto known = copied->find(node);
  if (known != copied->end()) return known->second;
  std::vector<Link> links(other.links(node).begin(), other.links(node).end());
  for (Link& link : links) link.parent = copy(other, link.parent, copied);
  const size_t first = links_.size();
  links_.insert(links_.end(), links.begin(), links.end());
  const uint32_t result = intern(first, other.has_bottom(node));
  copied->emplace(node, result);
  return result;
}

}  // namespace rushlight::llm::grammar
