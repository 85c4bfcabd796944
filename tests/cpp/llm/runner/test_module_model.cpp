// What a runner takes from a program: its description, and the digest that sessions are saved with.
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "data_builder.h"
#include "rushlight/core/digest.h"
#include "rushlight/llm/runner/metadata.h"
#include "rushlight/llm/runner/module_model.h"
#include "test_kernels.h"

using namespace rushlight;
using namespace rushlight::llm;
using namespace rushlight::test;

namespace {

// The description of a small model, with one number changed.
std::string description(const char* name, const char* value) {
  std::string json = R"({"version": 1, "vocabulary": 97, "context": 512, "batch": 64, "wanted": 8,
                         "layers": 1, "key_heads": 1, "width": 8, "value_width": 8})";
  const std::string key = std::string("\"") + name + "\": ";
  const size_t at = json.find(key);
  if (at == std::string::npos) return json;
  const size_t begin = at + key.size();
  return json.replace(begin, json.find_first_of(",}", begin) - begin, value);
}

Code code_of(const std::string& json, Message* message) {
  return read_metadata({json.data(), json.size()}, message).status().code();
}

// Sizes that would need more memory than there is.
void test_sizes() {
  Message message;
  CHECK(code_of(description("", ""), &message) == Code::Ok);
  for (const char* name : {"vocabulary", "context", "batch", "wanted"}) {
    CHECK(code_of(description(name, "16777216"), &message) == Code::Ok);
    for (const char* value : {"0", "-1", "16777217", "2147483647", "9e18", "null"}) {
      message.clear();
      CHECK(code_of(description(name, value), &message) == Code::InvalidProgram);
      CHECK(std::strstr(message.text(), name) != nullptr);
    }
  }
}

// Weights in data files are part of the model.
void test_digest() {
  Plan plan;
  const std::vector<uint8_t> program = file_of(plan);
  const auto digest_with = [&](const std::vector<uint8_t>& data) {
    std::vector<uint64_t> aligned(data.size() / 8 + 1);
    if (!data.empty()) std::memcpy(aligned.data(), data.data(), data.size());
    Module module;
    CHECK(module.open_memory(program.data(), program.size()).ok());
    if (!data.empty()) CHECK(module.add_data_memory(aligned.data(), data.size()).ok());
    return digest_of(module);
  };
  const std::vector<uint8_t> data = data_file({string_of("l.weight")}, {2});
  std::vector<uint8_t> other = data;
  other.back() ^= 1;
  const uint64_t digests[] = {digest_with({}), digest_with(data), digest_with(other),
                              digest_with(data_file({string_of("l.bias")}, {2}))};
  for (size_t i = 0; i < 4; ++i) {
    for (size_t k = 0; k < i; ++k) CHECK(digests[i] != digests[k]);
  }
  CHECK(digest_with(data) == digests[1]);
  CHECK(digest_with({}) == rushlight::digest_of({program.data(), program.size()}));
}

}  // namespace

int main() {
  test_sizes();
  test_digest();
  return check_result();
}
