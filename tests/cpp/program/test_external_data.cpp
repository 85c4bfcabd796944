// Keys of data files: found for any order in the file, by linear and by binary search.
#include <string>
#include <vector>

#include "check.h"
#include "data_builder.h"
#include "rushlight/program/external_data.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

struct Loaded {
  std::vector<uint64_t> aligned;
  MemoryLoader loader{nullptr, 0};
  ExternalData data;
  Status status;

  explicit Loaded(const std::vector<uint8_t>& bytes) : aligned(bytes.size() / 8 + 1) {
    std::memcpy(aligned.data(), bytes.data(), bytes.size());
    loader = MemoryLoader(aligned.data(), bytes.size());
    status = data.load(loader);
  }
};

// The index of the entry with this key; -1 if there is none.
int entry(const ExternalData& data, const std::string& key) {
  auto bytes = data.get(StringView(key.data(), key.size()));
  if (!bytes.ok()) return -1;
  float first = 0;
  std::memcpy(&first, bytes->data(), sizeof(first));
  return static_cast<int>(first - 1.5f);
}

void test_find() {
  const std::vector<std::string> keys = {"layer.10.weight",
                                         "layer.2.weight",
                                         "b",
                                         "",
                                         "layer.1",
                                         "layer.10",
                                         "\xff",
                                         "b",
                                         "a\x80",
                                         "a",
                                         "layer.2.weight",
                                         "z",
                                         "a ",
                                         "bb"};
  std::vector<NodePtr> nodes;
  for (const std::string& key : keys) nodes.push_back(string_of(key));
  for (size_t n = 0; n <= keys.size(); ++n) {
    Loaded file(data_file({nodes.begin(), nodes.begin() + static_cast<long>(n)}, {2}));
    CHECK(file.status.ok() && file.data.n_keys() == n);
    std::vector<std::string> asked = keys;
    for (const std::string& key : keys) asked.push_back(key + "x");
    for (const std::string& key : keys) asked.push_back(key.substr(0, key.size() / 2));
    std::vector<int> before;
    for (const std::string& key : asked) before.push_back(entry(file.data, key));
    std::vector<uint32_t> order(n);
    file.data.sort_keys(order.data());
    for (size_t i = 0; i < asked.size(); ++i) CHECK(entry(file.data, asked[i]) == before[i]);
    for (size_t i = 0; i < n; ++i) {
      CHECK(before[i] >= 0 && keys[static_cast<size_t>(before[i])] == keys[i]);
      CHECK(file.data.layout(StringView(keys[i].data(), keys[i].size()))->sizes[0] == 2);
    }
  }
}

// One long key that many entries share would make a small file expensive.
void test_shared_keys_are_bounded() {
  for (const bool is_shared : {false, true}) {
    const NodePtr key = string_of(std::string(1000, 'k'));
    key->is_shared = is_shared;
    const Loaded file(data_file(std::vector<NodePtr>(50, key), {2}));
    CHECK(file.status.code() == (is_shared ? Code::InvalidExternalData : Code::Ok));
    if (!is_shared) continue;
    CHECK(std::strstr(file.data.message().text(), "keys take more bytes than it has") != nullptr);
  }
}

}  // namespace

int main() {
  test_find();
  test_shared_keys_are_bounded();
  return check_result();
}
