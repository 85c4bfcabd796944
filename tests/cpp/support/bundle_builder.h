// Writes bundled programs (schema/bundled_program.fbs) for tests, in which any detail can be wrong.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "test_kernels.h"

namespace rushlight {
namespace test {

inline NodePtr aligned_bytes(const std::vector<uint8_t>& bytes, size_t alignment, size_t skew) {
  NodePtr node = vector_of(bytes);
  node->alignment = alignment;
  node->skew = skew;
  return node;
}

struct BundledTensor {
  std::vector<int32_t> sizes;
  std::vector<uint8_t> data;
  int8_t dtype = 6;                     // float32
  std::vector<uint8_t> dim_order = {};  // if empty, row-major
  size_t skew = 0;

  Table value() const {
    std::vector<uint8_t> order = dim_order;
    for (size_t i = order.size(); i < sizes.size() && dim_order.empty(); ++i) {
      order.push_back(static_cast<uint8_t>(i));
    }
    Table tensor;
    tensor.scalar(0, dtype).ref(1, vector_of(sizes)).ref(2, aligned_bytes(data, 16, skew));
    tensor.ref(3, vector_of(order));
    return Table().choice(0, 1, tensor);
  }
};

inline BundledTensor floats(const std::vector<int32_t>& sizes, const std::vector<float>& values) {
  BundledTensor tensor = {sizes, std::vector<uint8_t>(values.size() * sizeof(float))};
  if (!values.empty()) std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

struct BundledTest {
  std::vector<Table> inputs;
  std::vector<Table> expected;
  std::string name = "";
  std::vector<double> rtol = {};
  std::vector<double> atol = {};

  Table table() const {
    Table notes;
    notes.ref(0, string_of(name)).ref(2, vector_of(rtol)).ref(3, vector_of(atol));
    Table test;
    test.ref(0, tables_of(inputs)).ref(1, tables_of(expected)).ref(16, notes.node());
    return test;
  }
};

struct BundleFile {
  std::vector<uint8_t> program;
  std::vector<std::pair<std::string, std::vector<BundledTest>>> suites;
  size_t skew = 0;

  std::vector<uint8_t> bytes() const {
    std::vector<Table> tables;
    for (const auto& [method, tests] : suites) {
      std::vector<Table> cases;
      for (const BundledTest& test : tests) cases.push_back(test.table());
      tables.push_back(Table().ref(0, string_of(method)).ref(1, tables_of(cases)));
    }
    Table root;
    root.scalar<uint32_t>(0, 2).ref(1, tables_of(tables));
    root.ref(2, aligned_bytes(program, 32, skew));
    Writer writer;
    writer.put(uint32_t{0});
    const uint8_t identifier[] = {'B', 'P', '0', '8'};
    writer.bytes.insert(writer.bytes.end(), identifier, identifier + 4);
    writer.lead(0, *root.node());
    return writer.bytes;
  }
};

// add_plan() with a case that passes and one whose last element departs by 1.
inline std::vector<uint8_t> add_bundle() {
  const std::vector<Table> x = {floats({2, 3}, {1, 2, 3, 4, 5, 6}).value()};
  const std::vector<Table> right = {floats({2, 3}, {3, 6, 9, 12, 15, 18}).value()};
  const std::vector<Table> wrong = {floats({2, 3}, {3, 6, 9, 12, 15, 19}).value()};
  return BundleFile{file_of(add_plan()), {{"forward", {{x, right, "right"}, {x, wrong, "wrong"}}}}}
      .bytes();
}

}  // namespace test
}  // namespace rushlight
