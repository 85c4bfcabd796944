// Writes small data files (schema/flat_tensor.fbs) for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "program_builder.h"

namespace rushlight {
namespace test {

// A data file of float32 tensors with two elements, i + 1.5 and i + 2.5, and these sizes.
inline std::vector<uint8_t> data_file(const std::vector<NodePtr>& keys,
                                      const std::vector<int32_t>& sizes) {
  constexpr uint64_t kHeader = 48;
  Writer writer;
  writer.put(uint32_t{0});
  for (const char c : {'F', 'T', '0', '1'}) writer.put(c);
  writer.bytes.resize(8 + kHeader, 0);
  std::vector<uint8_t> order;
  for (size_t i = 0; i < sizes.size(); ++i) order.push_back(static_cast<uint8_t>(i));
  Table layout;
  layout.scalar<int8_t>(0, 6).ref(1, vector_of(sizes)).ref(2, vector_of(order));
  std::vector<Table> entries;
  std::vector<Table> segments;
  std::vector<float> values;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto segment = static_cast<uint32_t>(i);
    entries.push_back(Table().ref(0, keys[i]).scalar(1, segment).ref(2, layout.node()));
    segments.push_back(Table().scalar<uint64_t>(0, 8 * i).scalar<uint64_t>(1, 8));
    for (const float more : {1.5f, 2.5f}) values.push_back(static_cast<float>(i) + more);
  }
  const Table root = Table().ref(1, tables_of(segments)).ref(2, tables_of(entries));
  writer.lead(0, *root.node());
  writer.write_shared();
  const uint64_t flatbuffer_size = writer.bytes.size() - kHeader;
  writer.bytes.resize((writer.bytes.size() + 127) / 128 * 128, 0);
  const uint64_t bytes = values.size() * sizeof(float);
  const uint64_t fields[] = {kHeader, flatbuffer_size, writer.bytes.size(), bytes};
  const uint32_t length = 40;
  std::memcpy(&writer.bytes[8], "FH01", 4);
  std::memcpy(&writer.bytes[12], &length, 4);
  std::memcpy(&writer.bytes[16], fields, sizeof(fields));
  const auto* data = reinterpret_cast<const uint8_t*>(values.data());
  writer.bytes.insert(writer.bytes.end(), data, data + bytes);
  return writer.bytes;
}

}  // namespace test
}  // namespace rushlight
