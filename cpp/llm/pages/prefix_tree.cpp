#include "rushlight/llm/pages/prefix_tree.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rushlight::llm {
namespace {

size_t equal_tokens(const int32_t* a, const int32_t* b, size_t count) {
  size_t equal = 0;
  while (equal < count && a[equal] == b[equal]) ++equal;
  return equal;
}

}  // namespace

// The child that begins with the most of these tokens; those of a root have no parent.
PrefixTree::Match PrefixTree::find(uint64_t root, const Node* parent, const int32_t* tokens,
                                   size_t count) const {
  Match best;
  for (const std::unique_ptr<Node>& node : nodes_) {
    if (node->parent != parent || node->root != root) continue;
    const size_t equal = equal_tokens(node->tokens, tokens, std::min(count, node->count));
    if (equal > best.equal) best = {node.get(), equal};
  }
  return best;
}

PrefixTree::Node* PrefixTree::add(uint64_t root, Node* parent) {
  nodes_.push_back(std::make_unique<Node>());
  Node* node = nodes_.back().get();
  node->root = root;
  node->parent = parent;
  if (parent != nullptr) ++parent->children;
  return node;
}

void PrefixTree::fill(Node* node, const int32_t* tokens, size_t count, uint8_t* page) {
  pool_->share(page);
  if (node->page != nullptr) pool_->release(node->page);
  node->page = page;
  node->count = count;
  std::memcpy(node->tokens, tokens, count * sizeof(int32_t));
}

void PrefixTree::insert(uint64_t root, Span<const int32_t> tokens, const PageTable& table) {
  ++clock_;
  Node* parent = nullptr;
  for (size_t at = 0; at < tokens.size(); at += kPageTokens) {
    const int32_t* block = tokens.data() + at;
    const size_t count = std::min(kPageTokens, tokens.size() - at);
    const Match match = find(root, parent, block, count);
    Node* node = match.node;
    // A node that these tokens continue takes the longer page; one that diverges stays beside.
    if (node == nullptr || (match.equal < node->count && match.equal < count))
      node = add(root, parent);
    if (node->count < count) fill(node, block, count, table.page(at / kPageTokens));
    node->used = clock_;
    parent = node;
  }
}

size_t PrefixTree::match(uint64_t root, Span<const int32_t> tokens, PageTable* table) {
  ++clock_;
  size_t matched = 0;
  Node* parent = nullptr;
  while (matched < tokens.size()) {
    const size_t count = std::min(kPageTokens, tokens.size() - matched);
    const Match match = find(root, parent, tokens.data() + matched, count);
    if (match.node == nullptr) break;
    match.node->used = clock_;
    table->append_shared(match.node->page);
    matched += match.equal;
    parent = match.node;
    if (match.equal < kPageTokens) break;
  }
  return matched;
}

void PrefixTree::remove(size_t index) {
  std::unique_ptr<Node> node = std::move(nodes_[index]);
  nodes_[index] = std::move(nodes_.back());
  nodes_.pop_back();
  if (node->parent != nullptr) --node->parent->children;
  pool_->release(node->page);
}

bool PrefixTree::drop_page() {
  size_t oldest = nodes_.size();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = *nodes_[i];
    if (node.children > 0 || PagePool::users(node.page) > 1) continue;
    if (oldest == nodes_.size() || node.used < nodes_[oldest]->used) oldest = i;
  }
  if (oldest == nodes_.size()) return false;
  remove(oldest);
  return true;
}

bool PrefixTree::forget(const uint8_t* page) {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i]->page != page || nodes_[i]->children > 0) continue;
    remove(i);
    return true;
  }
  return false;
}

void PrefixTree::clear() {
  for (const std::unique_ptr<Node>& node : nodes_) pool_->release(node->page);
  nodes_.clear();
}

}  // namespace rushlight::llm
