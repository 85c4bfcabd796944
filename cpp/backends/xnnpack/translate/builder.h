// Makes the parts of an engine's graph: values, nodes, and where in scratch memory the values
// between them lie. If memory runs out, build() returns false.
#pragma once

#include <initializer_list>
#include <new>

#include "rushlight/backends/xnnpack/translate/layout.h"
#include "rushlight/core/allocator.h"
#include "rushlight/engine/types/graph_parts.h"

namespace rushlight::xnnpack {

// A list that grows in an allocator. Without memory nothing is added, and ok() is false from then
// on.
template <typename T>
class List {
 public:
  explicit List(Allocator* allocator) : allocator_(allocator) {}

  void push(const T& item) {
    if (size_ == capacity_ && !grow()) return;
    new (data_ + size_++) T(item);
  }
  bool ok() const { return ok_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data_[i]; }
  Span<T> span() const { return {data_, size_}; }

 private:
  bool grow() {
    const size_t wanted = capacity_ > 0 ? 2 * capacity_ : 16;
    T* data = allocator_->allocate_array<T>(wanted);
    if (data == nullptr) return ok_ = false;
    for (size_t i = 0; i < size_; ++i) new (data + i) T(data_[i]);
    data_ = data;
    capacity_ = wanted;
    return true;
  }

  Allocator* allocator_;
  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  bool ok_ = true;
};

class Builder {
 public:
  explicit Builder(Allocator* allocator)
      : allocator_(allocator),
        values_(allocator),
        constants_(allocator),
        nodes_(allocator),
        blocks_(allocator) {}

  // A new block of scratch for a dense view.
  engine::Value scratch(const engine::View& view);
  // Memory that nothing writes, aligned for its elements.
  engine::Value constant(const void* data, const engine::View& view);

  // The number of the XNNPACK node that the next engine nodes are made from.
  void begin(size_t node) { node_ = static_cast<int64_t>(node); }
  // Adds a node. A nullptr stands for an input that is left out.
  void emit(const engine::Parameters& parameters,
            std::initializer_list<const engine::Value*> inputs,
            std::initializer_list<const engine::Value*> outputs);
  // Adds a node between values of the same sizes, with as few dimensions as can be; `table` is a
  // further input.
  void emit_alike(const engine::Parameters& parameters, const engine::Value& from,
                  const engine::Value& to, const engine::Value* table = nullptr);
  // The number of a value, for operands of tile programs and residuals.
  uint32_t number(const engine::Value& value);
  // A copy of an array that lives as long as the parts.
  template <typename T>
  Span<const T> keep(Span<const T> items) {
    T* data = allocator_->allocate_array<T>(items.size());
    if (data == nullptr && !items.empty()) {
      ok_ = false;
      return {};
    }
    for (size_t i = 0; i < items.size(); ++i) new (data + i) T(items[i]);
    return {data, items.size()};
  }

  // Adds a node that copies elements between memories of different strides.
  void copy(const engine::Value& from, const engine::Value& to);
  // The value, dense in this order of dimensions; copied if necessary.
  engine::Value in_order(const engine::Value& value, const Order& order);
  engine::Value dense(const engine::Value& value) { return in_order(value, Order()); }
  // The value with other sizes; copied if necessary.
  engine::Value reshape(const engine::Value& value, const Shape& shape);
  // The value as [rows, columns], where the last dimension becomes the columns and has stride 1;
  // copied if necessary.
  engine::Value rows(const engine::Value& value);

  // Gives values in scratch their offsets and returns the parts. False if memory ran out.
  bool build(size_t n_inputs, size_t n_outputs, engine::GraphParts* parts);

 private:
  // Scratch memory from the node that writes it first to the one that reads it last.
  struct Block {
    uint64_t size = 0;
    size_t first = SIZE_MAX;
    size_t last = 0;
    uint64_t offset = 0;
  };

  void use(uint32_t value, size_t node);
  void measure_lives();
  uint64_t place_blocks();

  Allocator* allocator_;
  List<engine::Value> values_;  // in scratch: `index` is the block
  List<engine::Constant> constants_;
  List<engine::Node> nodes_;
  List<Block> blocks_;
  int64_t node_ = -1;
  bool ok_ = true;
};

}  // namespace rushlight::xnnpack
