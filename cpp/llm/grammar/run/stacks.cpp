#include "rushlight/llm/grammar/run/stacks.h"

#include <algorithm>

#include "rushlight/llm/grammar/run/hash.h"

namespace rushlight::llm::grammar {
namespace {

uint64_t key_of(std::pair<uint32_t, uint32_t> nodes) {
  const auto [low, high] = std::minmax(nodes.first, nodes.second);
  return uint64_t{low} << 32 | high;
}

}  // namespace

void Stacks::clear() {
  links_.clear();
  nodes_.assign(1, {0, 0, true});
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
  for (size_t i = first; i < links_.size(); ++i) {
    const Link& link = links_[i];
    hash = mix(mix(hash, uint64_t{link.state} << 32 | link.parent), link.count);
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
  nodes_.push_back({static_cast<uint32_t>(first), static_cast<uint32_t>(size), has_bottom});
  by_hash_.emplace(hash, id);
  return id;
}

uint32_t Stacks::push(uint32_t state, uint64_t count, uint32_t parent) {
  links_.push_back({state, parent, count});
  return intern(links_.size() - 1, false);
}

uint32_t Stacks::united(uint32_t a, uint32_t b) {
  const uint64_t key = key_of({a, b});
  const auto known = united_.find(key);
  if (known != united_.end()) return known->second;
  open_.assign(1, {a, b});
  while (!open_.empty()) {
    const Pair pair = open_.back();
    if (united_.count(key_of(pair)) != 0 || unite_links(pair)) open_.pop_back();
  }
  return united_.at(key);
}

// Links are sorted by (state, count); those of both become one over the union of what lies below.
bool Stacks::unite_links(Pair pair) {
  const Span<const Link> a = links(pair.first), b = links(pair.second);
  const auto before = [](const Link& x, const Link& y) {
    return x.state != y.state ? x.state < y.state : x.count < y.count;
  };
  const size_t known = open_.size();
  merged_.clear();
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && before(a[i], b[j]))) {
      merged_.push_back(a[i++]);
    } else if (i == a.size() || before(b[j], a[i])) {
      merged_.push_back(b[j++]);
    } else {
      const Pair below = {a[i].parent, b[j++].parent};
      merged_.push_back(a[i++]);
      if (below.first == below.second) continue;
      const auto entry = united_.find(key_of(below));
      if (entry == united_.end()) {
        open_.push_back(below);
      } else {
        merged_.back().parent = entry->second;
      }
    }
  }
  if (open_.size() > known) return false;
  const bool has_bottom = nodes_[pair.first].has_bottom || nodes_[pair.second].has_bottom;
  const size_t first = links_.size();
  links_.insert(links_.end(), merged_.begin(), merged_.end());
  united_.emplace(key_of(pair), intern(first, has_bottom));
  return true;
}

uint32_t Stacks::copy(const Stacks& other, uint32_t node,
                      std::unordered_map<uint32_t, uint32_t>* copied) {
  copied->emplace(kBottom, kBottom);
  std::vector<uint32_t> open = {node};
  while (!open.empty()) {
    const uint32_t next = open.back();
    const size_t first = links_.size(), known = open.size();
    if (copied->count(next) == 0) {
      for (Link link : other.links(next)) {
        const auto below = copied->find(link.parent);
        if (below == copied->end()) {
          open.push_back(link.parent);
        } else {
          link.parent = below->second;
          links_.push_back(link);
        }
      }
      if (open.size() > known) {  // what lies below is copied first
        links_.resize(first);
        continue;
      }
      copied->emplace(next, intern(first, other.has_bottom(next)));
    }
    open.pop_back();
  }
  return copied->at(node);
}

}  // namespace rushlight::llm::grammar
