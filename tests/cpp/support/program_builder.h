// Writes small program files for tests, in which any detail can be wrong: a tree of flatbuffer
// tables by field number (schema/program.fbs), and functions for the common tables.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rushlight {
namespace test {

// A table, a vector or a string. The nodes that it refers to are written after it.
struct Node {
  struct Field {
    unsigned id;
    std::vector<uint8_t> bytes;    // a scalar, or
    std::shared_ptr<Node> target;  // the node that the field's offset points to
  };
  std::vector<Field> fields;  // of a table
  bool is_table = false;
  bool is_shared = false;  // written once, after all others, for all that refer to it
  uint32_t count = 0;      // of a vector or string
  // The elements begin at a multiple of `alignment`, and `skew`.
  size_t alignment = 1;
  size_t skew = 0;
  std::vector<uint8_t> elements;             // of a vector of scalars, or a string with its NUL
  std::vector<std::shared_ptr<Node>> items;  // of a vector of tables
};
using NodePtr = std::shared_ptr<Node>;

class Table {
 public:
  Table() : node_(std::make_shared<Node>()) { node_->is_table = true; }
  template <typename T>
  Table& scalar(unsigned id, T value) {
    std::vector<uint8_t> bytes(sizeof(T));
    std::memcpy(bytes.data(), &value, sizeof(T));
    node_->fields.push_back({id, bytes, nullptr});
    return *this;
  }
  Table& ref(unsigned id, NodePtr target) {
    node_->fields.push_back({id, {}, std::move(target)});
    return *this;
  }
  // A union: its type number is in field `id`, the table in the next field.
  Table& choice(unsigned id, uint8_t type, const Table& value) {
    scalar<uint8_t>(id, type);
    return ref(id + 1, value.node());
  }
  NodePtr node() const { return node_; }

 private:
  NodePtr node_;
};

template <typename T>
NodePtr vector_of(const std::vector<T>& values) {
  auto node = std::make_shared<Node>();
  node->count = static_cast<uint32_t>(values.size());
  node->elements.resize(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(node->elements.data(), values.data(), node->elements.size());
  return node;
}
inline NodePtr tables_of(const std::vector<Table>& tables) {
  auto node = std::make_shared<Node>();
  node->count = static_cast<uint32_t>(tables.size());
  for (const Table& table : tables) node->items.push_back(table.node());
  return node;
}
inline NodePtr string_of(const std::string& text) {
  auto node = std::make_shared<Node>();
  node->count = static_cast<uint32_t>(text.size());
  node->elements.assign(text.begin(), text.end());
  node->elements.push_back(0);
  return node;
}

class Writer {
 public:
  std::vector<uint8_t> bytes;

  void write(const Node& node) {
    if (node.is_table) return write_table(node);
    put(node.count);
    bytes.insert(bytes.end(), node.elements.begin(), node.elements.end());
    const size_t first = bytes.size();
    for (size_t i = 0; i < node.items.size(); ++i) put(uint32_t{0});
    for (size_t i = 0; i < node.items.size(); ++i) lead(first + 4 * i, *node.items[i]);
  }
  // After everything else: nodes that several tables refer to.
  void write_shared() {
    std::map<const Node*, size_t> places;
    for (const auto& [at, target] : shared_) {
      const auto [place, is_new] = places.emplace(target, bytes.size());
      const uint32_t offset = static_cast<uint32_t>(place->second - at);
      std::memcpy(&bytes[at], &offset, 4);
      if (is_new) write(*target);
    }
  }
  // Writes `target` at the end and makes the offset at `at` point to it.
  void lead(size_t at, const Node& target) {
    while ((bytes.size() + 4) % target.alignment != target.skew) put(uint8_t{0});
    // A table's vtable is written first, so the offset is known once that is done.
    const size_t start = bytes.size() + (target.is_table ? vtable_size(target) : 0);
    const uint32_t offset = static_cast<uint32_t>(start - at);
    std::memcpy(&bytes[at], &offset, 4);
    write(target);
  }
  template <typename T>
  void put(T value) {
    const size_t at = bytes.size();
    bytes.resize(at + sizeof(T));
    std::memcpy(&bytes[at], &value, sizeof(T));
  }

 private:
  static size_t vtable_size(const Node& node) {
    unsigned n = 0;
    for (const Node::Field& field : node.fields) n = field.id + 1 > n ? field.id + 1 : n;
    return 4 + 2 * n;
  }
  void write_table(const Node& node) {
    const size_t vtable = bytes.size();
    bytes.resize(vtable + vtable_size(node), 0);
    uint16_t size = 4;
    for (const Node::Field& field : node.fields) {
      std::memcpy(&bytes[vtable + 4 + 2 * field.id], &size, 2);
      size = static_cast<uint16_t>(size + (field.target ? 4 : field.bytes.size()));
    }
    const uint16_t vtable_bytes = static_cast<uint16_t>(vtable_size(node));
    std::memcpy(&bytes[vtable], &vtable_bytes, 2);
    std::memcpy(&bytes[vtable + 2], &size, 2);
    put(static_cast<int32_t>(bytes.size() - vtable));
    std::vector<std::pair<size_t, const Node*>> references;
    for (const Node::Field& field : node.fields) {
      if (field.target) references.emplace_back(bytes.size(), field.target.get());
      if (field.target) put(uint32_t{0});
      bytes.insert(bytes.end(), field.bytes.begin(), field.bytes.end());
    }
    for (const auto& [at, target] : references) {
      if (target->is_shared) {
        shared_.emplace_back(at, target);
      } else {
        lead(at, *target);
      }
    }
  }

  std::vector<std::pair<size_t, const Node*>> shared_;
};

// ---- The tables of schema/program.fbs ----

struct TensorOptions {
  int8_t dtype = 6;                // float32
  std::vector<uint8_t> dim_order;  // if empty, row-major
  uint32_t constant = 0;           // data_buffer_idx
  int memory_id = 1;               // -1: not planned
  uint64_t offset = 0;
  int8_t dynamism = 0;
  std::string name;  // fully qualified
  bool external = false;
  int32_t storage_offset = 0;
};

inline Table tensor_table(const std::vector<int32_t>& sizes, const TensorOptions& options) {
  std::vector<uint8_t> dim_order = options.dim_order;
  for (size_t i = dim_order.size(); i < sizes.size() && options.dim_order.empty(); ++i) {
    dim_order.push_back(static_cast<uint8_t>(i));
  }
  Table table;
  table.scalar<int8_t>(0, options.dtype).scalar<int32_t>(1, options.storage_offset);
  table.ref(2, vector_of(sizes)).ref(3, vector_of(dim_order));
  table.scalar<uint32_t>(5, options.constant);
  if (options.memory_id >= 0) {
    Table place;
    place.scalar<uint32_t>(0, static_cast<uint32_t>(options.memory_id));
    place.scalar<uint32_t>(1, static_cast<uint32_t>(options.offset));
    place.scalar<uint32_t>(2, static_cast<uint32_t>(options.offset >> 32));
    table.ref(6, place.node());
  }
  table.scalar<int8_t>(8, options.dynamism);
  if (options.external || !options.name.empty()) {
    Table extra;
    extra.ref(1, string_of(options.name)).scalar<int8_t>(2, options.external ? 1 : 0);
    table.ref(9, extra.node());
  }
  return table;
}

// One method, built value by value. All members are public, so that a test can make it invalid.
class Plan {
 public:
  std::string name = "forward";
  std::vector<Table> values;
  std::vector<int32_t> inputs;
  std::vector<int32_t> outputs;
  std::vector<Table> instructions;
  std::vector<Table> operators;
  std::vector<Table> delegates;
  std::vector<int64_t> arenas = {0, 256};

  int32_t value(uint8_t type, const Table& table) {
    values.push_back(Table().choice(0, type, table));
    return static_cast<int32_t>(values.size() - 1);
  }
  int32_t none() { return value(1, Table()); }
  int32_t integer(int64_t v) { return value(2, Table().scalar(0, v)); }
  int32_t boolean(bool v) { return value(3, Table().scalar<uint8_t>(0, v)); }
  int32_t real(double v) { return value(4, Table().scalar(0, v)); }
  int32_t tensor(const std::vector<int32_t>& sizes, const TensorOptions& options = {}) {
    return value(5, tensor_table(sizes, options));
  }
  int32_t text(const std::string& v) { return value(6, Table().ref(0, string_of(v))); }
  int32_t int_list(const std::vector<int64_t>& items) {
    return value(7, Table().ref(0, vector_of(items)));
  }
  int32_t tensor_list(const std::vector<int32_t>& items, bool optional = false) {
    return value(optional ? 11 : 10, Table().ref(0, vector_of(items)));
  }

  void call(const std::string& op, const std::vector<int32_t>& args,
            const std::string& overload = "out") {
    operators.push_back(Table().ref(0, string_of(op)).ref(1, string_of(overload)));
    const int32_t index = static_cast<int32_t>(operators.size() - 1);
    instruction(1, Table().scalar(0, index).ref(1, vector_of(args)));
  }
  void delegate_call(int32_t index, const std::vector<int32_t>& args) {
    instruction(2, Table().scalar(0, index).ref(1, vector_of(args)));
  }
  void move(int32_t from, int32_t to) { instruction(3, Table().scalar(0, from).scalar(1, to)); }
  void jump_false(int32_t condition, int32_t to) {
    instruction(4, Table().scalar(0, condition).scalar(1, to));
  }
  void free(int32_t index) { instruction(5, Table().scalar(0, index)); }
  void instruction(uint8_t type, const Table& table) {
    instructions.push_back(Table().choice(0, type, table));
  }
  void delegate(const std::string& id, uint32_t segment) {
    const Table place = Table().scalar<int8_t>(0, 1).scalar(1, segment);
    delegates.push_back(Table().ref(0, string_of(id)).ref(1, place.node()));
  }

  Table table() const {
    Table plan;
    const Table chain = Table().ref(2, tables_of(instructions));
    plan.ref(0, string_of(name)).ref(2, tables_of(values));
    plan.ref(3, vector_of(inputs)).ref(4, vector_of(outputs)).ref(5, tables_of({chain}));
    plan.ref(6, tables_of(operators)).ref(7, tables_of(delegates)).ref(8, vector_of(arenas));
    return plan;
  }
};

// A file of plans, with segments after the flatbuffer.
class ProgramFile {
 public:
  std::vector<Plan> plans;
  std::vector<std::vector<uint8_t>> segments;
  std::vector<uint64_t> constants = {0};  // offsets in segment 0
  std::vector<uint64_t> states;           // offsets in segment 1
  std::vector<std::pair<std::string, uint32_t>> named;
  bool shares_names = false;  // equal names of `named` are written once
  uint32_t version = 0;

  std::vector<uint8_t> bytes() const {
    Writer writer;
    writer.put(uint32_t{0});
    const uint8_t identifier[] = {'E', 'T', '1', '2'};
    writer.bytes.insert(writer.bytes.end(), identifier, identifier + 4);
    const size_t header = writer.bytes.size();
    writer.bytes.resize(header + 32, 0);
    const Table top = root();
    writer.lead(0, *top.node());
    writer.write_shared();
    writer.bytes.resize((writer.bytes.size() + 127) / 128 * 128, 0);
    const uint64_t base = writer.bytes.size();
    uint64_t end = base;
    for (const std::vector<uint8_t>& segment : segments) {
      writer.bytes.resize(end, 0);
      writer.bytes.insert(writer.bytes.end(), segment.begin(), segment.end());
      end = (writer.bytes.size() + 127) / 128 * 128;
    }
    const uint64_t fields[] = {base, base, writer.bytes.size() - base};
    const uint32_t length = 32;
    std::memcpy(&writer.bytes[header], "eh00", 4);
    std::memcpy(&writer.bytes[header + 4], &length, 4);
    std::memcpy(&writer.bytes[header + 8], fields, 24);
    return writer.bytes;
  }

 private:
  Table root() const {
    std::vector<Table> plan_tables;
    for (const Plan& plan : plans) plan_tables.push_back(plan.table());
    std::vector<Table> segment_tables;
    uint64_t offset = 0;
    for (const std::vector<uint8_t>& segment : segments) {
      const uint64_t size = segment.size();
      segment_tables.push_back(Table().scalar(0, offset).scalar(1, size));
      offset = (offset + size + 127) / 128 * 128;
    }
    Table table;
    table.scalar(0, version).ref(1, tables_of(plan_tables)).ref(4, tables_of(segment_tables));
    table.ref(5, Table().scalar<uint32_t>(0, 0).ref(1, vector_of(constants)).node());
    if (!states.empty()) {
      const Table part = Table().scalar<uint32_t>(0, 1).ref(1, vector_of(states));
      table.ref(6, tables_of({part}));
    }
    std::vector<Table> names;
    std::map<std::string, NodePtr> shared;
    for (const auto& [key, segment] : named) {
      NodePtr name = string_of(key);
      name->is_shared = shares_names;
      if (shares_names) name = shared.emplace(key, name).first->second;
      names.push_back(Table().ref(0, name).scalar(1, segment));
    }
    table.ref(7, tables_of(names));
    return table;
  }
};

}  // namespace test
}  // namespace rushlight
