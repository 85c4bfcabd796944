// Writes small data files (schema/flat_tensor.fbs) for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "program_builder.h"

namespace rushlight {
namespace test {

struct DataEntry {
  NodePtr key;
  std::vector<uint8_t> bytes;
  std::vector<int32_t> sizes;
  int8_t dtype = 6;        // float32
  bool has_layout = true;  // it is a tensor
};

// A data file. Bytes of entries start at multiples of `alignment`.
inline std::vector<uint8_t> data_file_of(const std::vector<DataEntry>& from, size_t alignment = 1) {
  constexpr uint64_t kHeader = 48;
  Writer writer;
  writer.put(uint32_t{0});
  for (const char c : {'F', 'T', '0', '1'}) writer.put(c);
  writer.bytes.resize(8 + kHeader, 0);
  std::vector<Table> entries;
  std::vector<Table> segments;
  std::vector<uint8_t> data;
  for (size_t i = 0; i < from.size(); ++i) {
    const DataEntry& entry = from[i];
    std::vector<uint8_t> order;
    for (size_t d = 0; d < entry.sizes.size(); ++d) order.push_back(static_cast<uint8_t>(d));
    Table layout;
    layout.scalar(0, entry.dtype).ref(1, vector_of(entry.sizes)).ref(2, vector_of(order));
    Table table;
    table.ref(0, entry.key).scalar(1, static_cast<uint32_t>(i));
    entries.push_back(entry.has_layout ? table.ref(2, layout.node()) : table);
    data.resize((data.size() + alignment - 1) / alignment * alignment, 0);
    segments.push_back(
        Table().scalar<uint64_t>(0, data.size()).scalar<uint64_t>(1, entry.bytes.size()));
    data.insert(data.end(), entry.bytes.begin(), entry.bytes.end());
  }
  const Table root = Table().ref(1, tables_of(segments)).ref(2, tables_of(entries));
  writer.lead(0, *root.node());
  writer.write_shared();
  const uint64_t flatbuffer_size = writer.bytes.size() - kHeader;
  writer.bytes.resize((writer.bytes.size() + 127) / 128 * 128, 0);
  const uint64_t fields[] = {kHeader, flatbuffer_size, writer.bytes.size(), data.size()};
  const uint32_t length = 40;
  std::memcpy(&writer.bytes[8], "FH01", 4);
  std::memcpy(&writer.bytes[12], &length, 4);
  std::memcpy(&writer.bytes[16], fields, sizeof(fields));
  writer.bytes.insert(writer.bytes.end(), data.begin(), data.end());
  return writer.bytes;
}

// A data file of float32 tensors with two elements, i + 1.5 and i + 2.5, and these sizes.
inline std::vector<uint8_t> data_file(const std::vector<NodePtr>& keys,
                                      const std::vector<int32_t>& sizes) {
  std::vector<DataEntry> entries;
  for (size_t i = 0; i < keys.size(); ++i) {
    const float values[] = {static_cast<float>(i) + 1.5f, static_cast<float>(i) + 2.5f};
    const auto* bytes = reinterpret_cast<const uint8_t*>(values);
    entries.push_back({keys[i], {bytes, bytes + sizeof(values)}, sizes});
  }
  return data_file_of(entries);
}

}  // namespace test
}  // namespace rushlight
