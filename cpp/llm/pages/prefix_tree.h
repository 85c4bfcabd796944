// The prompts whose keys and values are still there: a tree of pages, in which a path from the root
// is a sequence of tokens. A sequence that begins as an earlier one did shares its pages, up to the
// last equal token; what it writes into a shared page goes to a copy (PageTable).
//
// A node is one page. All but the last node of a path are full. The tree is one user of each of its
// pages, and gives those that nobody else uses back when pages are short, least recently used
// first.
//
// Pages depend on the adapter that they were computed with, too. So there is a root for each, named
// by a number: 0 stands for the model alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rushlight/core/span.h"
#include "rushlight/llm/pages/page_table.h"

namespace rushlight::llm {

class PrefixTree {
 public:
  explicit PrefixTree(PagePool* pool) : pool_(pool) {}
  ~PrefixTree() { clear(); }
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  // Remembers the pages of a table that hold these tokens.
  void insert(uint64_t root, Span<const int32_t> tokens, const PageTable& table);
  // Fills an empty table with the pages of the longest known beginning of `tokens`; returns how
  // many tokens that is.
  size_t match(uint64_t root, Span<const int32_t> tokens, PageTable* table);
  // Drops the least recently used page that has no other user. False if there is none.
  bool drop_page();
  // Drops every node that refers to this page, if it is the last of its path; false if there is
  // none.
  bool forget(const uint8_t* page);
  void clear();
  size_t pages() const { return nodes_.size(); }

 private:
  struct Node {
    int32_t tokens[kPageTokens];
    size_t count = 0;
    uint8_t* page = nullptr;
    uint64_t root = 0;
    Node* parent = nullptr;
    size_t children = 0;
    uint64_t used = 0;
  };
  struct Match {
    Node* node = nullptr;
    size_t equal = 0;  // tokens
  };

  Match find(uint64_t root, const Node* parent, const int32_t* tokens, size_t count) const;
  Node* add(uint64_t root, Node* parent);
  void fill(Node* node, const int32_t* tokens, size_t count, uint8_t* page);
  void remove(size_t index);

  PagePool* pool_;
  std::vector<std::unique_ptr<Node>> nodes_;
  uint64_t clock_ = 0;
};

}  // namespace rushlight::llm
