// Small files of adapters, in which any detail can be wrong.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "data_builder.h"
#include "rushlight/llm/adapters/adapter.h"

namespace rushlight::test {

using llm::Adapter;
using llm::AdapterFacts;

inline AdapterFacts adapter_facts() {
  AdapterFacts facts;
  facts.rank = 8;
  facts.base = "base";
  facts.sites = {{"first", 20, 33}, {"second", 16, 7}};
  return facts;
}

inline std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

// The entries of an adapter of both layers; bytes of tensors are `fill`.
inline std::vector<DataEntry> adapter_entries(int32_t rank, uint8_t fill = 0) {
  std::vector<DataEntry> entries = {
      {string_of("rushlight/adapter"),
       bytes_of(R"({"version": 1, "base": "base", "sites": ["first", "second"]})"),
       {},
       0,
       false}};
  for (const auto& site : adapter_facts().sites) {
    const auto in = static_cast<int32_t>((site.in + 15) / 16 * 16);
    const auto panels = static_cast<int32_t>((site.out + 15) / 16);
    const auto count = [](int32_t n) { return static_cast<size_t>(n) * sizeof(float); };
    entries.push_back({string_of("lora/" + site.name + "/a"),
                       std::vector<uint8_t>(count(rank * in), fill),
                       {rank, in}});
    entries.push_back({string_of("lora/" + site.name + "/b"),
                       std::vector<uint8_t>(count(panels * rank * 16), fill),
                       {panels, rank, 16}});
  }
  return entries;
}

// A file, aligned as mapped ones are.
class AdapterFile {
 public:
  explicit AdapterFile(const std::vector<uint8_t>& bytes)
      : lines_(bytes.size() / sizeof(Line) + 1), size_(bytes.size()) {
    if (!bytes.empty()) std::memcpy(lines_.data(), bytes.data(), bytes.size());
  }
  explicit AdapterFile(const std::vector<DataEntry>& entries)
      : AdapterFile(data_file_of(entries, 128)) {}
  Span<const uint8_t> bytes() const {
    return {reinterpret_cast<const uint8_t*>(lines_.data()), size_};
  }

 private:
  struct Line {
    alignas(64) uint8_t bytes[64];
  };
  std::vector<Line> lines_;
  size_t size_;
};

}  // namespace rushlight::test
