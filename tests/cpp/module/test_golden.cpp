// Program files that ExecuTorch wrote, and files with payloads of our own. With inputs of ones,
// they must give the outputs that ExecuTorch or eager PyTorch computed, on every instruction set of
// the processor.
// Usage: test_golden FOLDER
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "kv_pages.h"
#include "rushlight/backends/cpu/cpu_backend.h"
#include "rushlight/backends/xnnpack/xnnpack_backend.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/module/module.h"

using namespace rushlight;

namespace {

// The numbers of expected.json, read by a minimal JSON reader: "file.method": [outputs]. An output
// is a number, true, false, a string or nested lists of numbers. "file.method 2,3 4" is for inputs
// of sizes [2, 3] and [4]; otherwise inputs have their maximum sizes.
struct Expected {
  std::string name;
  std::vector<std::vector<double>> numbers;  // for each output, flattened
  std::vector<std::string> texts;
};

class Reader {
 public:
  explicit Reader(const std::string& text) : at_(text.c_str()) {}

  std::vector<Expected> read() {
    std::vector<Expected> all;
    expect('{');
    while (peek() != '}') {
      Expected one;
      one.name = string();
      expect(':');
      expect('[');
      while (peek() != ']') {
        one.numbers.emplace_back();
        one.texts.emplace_back();
        value(&one.numbers.back(), &one.texts.back());
        skip(',');
      }
      expect(']');
      skip(',');
      all.push_back(one);
    }
    return all;
  }

 private:
  char peek() {
    while (*at_ == ' ' || *at_ == '\n') ++at_;
    return *at_;
  }
  void skip(char c) {
    if (peek() == c) ++at_;
  }
  void expect(char c) {
    CHECK(peek() == c);
    if (*at_ != '\0') ++at_;
  }
  std::string string() {
    expect('"');
    const char* start = at_;
    while (*at_ != '"' && *at_ != '\0') ++at_;
    std::string text(start, at_);
    expect('"');
    return text;
  }
  void value(std::vector<double>* numbers, std::string* text) {
    if (peek() == '"') {
      *text = string();
    } else if (*at_ == '[') {
      expect('[');
      while (peek() != ']' && *at_ != '\0') {
        value(numbers, text);
        skip(',');
      }
      expect(']');
    } else if (*at_ == 't' || *at_ == 'f') {
      numbers->push_back(*at_ == 't');
      at_ += *at_ == 't' ? 4 : 5;
    } else {
      char* end = nullptr;
      numbers->push_back(std::strtod(at_, &end));
      CHECK(end != at_);
      at_ = end != at_ ? end : at_ + 1;
    }
  }

  const char* at_;
};

double element(const Tensor& tensor, int64_t i) {
  if (tensor.dtype == DType::Float32) return tensor.as<float>()[i];
  if (tensor.dtype == DType::Int64) return static_cast<double>(tensor.as<int64_t>()[i]);
  if (tensor.dtype == DType::Int8) return tensor.as<int8_t>()[i];
  CHECK(false);
  return NAN;
}

// Outputs of the golden programs are contiguous, or their elements have the same order in memory in
// every dim order.
void compare(const EValue& output, const std::vector<double>& numbers, const std::string& text,
             double tolerance) {
  if (output.tag == Tag::String) {
    CHECK(output.string() == StringView(text.data(), text.size()));
    return;
  }
  if (output.is_scalar()) {
    CHECK(numbers.size() == 1 && output.to_double() == numbers[0]);
    return;
  }
  CHECK(output.is_tensor() && output.tensor().numel == static_cast<int64_t>(numbers.size()));
  if (!output.is_tensor()) return;
  for (int64_t i = 0; i < output.tensor().numel; ++i) {
    const double wanted = numbers[static_cast<size_t>(i)];
    CHECK(std::fabs(element(output.tensor(), i) - wanted) <= tolerance);
  }
}

// "2,3 4" -> {{2, 3}, {4}}
std::vector<std::vector<int32_t>> sizes_in(const std::string& text) {
  std::vector<std::vector<int32_t>> all;
  for (const char* at = text.c_str(); *at != '\0';) {
    char* end = nullptr;
    if (*at != ',') all.emplace_back();
    all.back().push_back(static_cast<int32_t>(std::strtol(*at == ',' ? at + 1 : at, &end, 10)));
    at = end;
  }
  return all;
}

void run(const std::string& folder, const Expected& expected) {
  const size_t dot = expected.name.find('.');
  const size_t space = std::min(expected.name.find(' '), expected.name.size());
  const std::string path = folder + "/" + expected.name.substr(0, dot) + ".pte";
  const std::string name = expected.name.substr(dot + 1, space - dot - 1);
  const std::vector<std::vector<int32_t>> sizes = sizes_in(expected.name.substr(space));
  // The order of the engine's sums depends on the instruction set.
  const bool by_engine =
      expected.name.find("cpu_engine") == 0 || expected.name.find("xnnpack") == 0;
  // XNNPACK rounds to float16 after each node.
  const bool has_halves = expected.name.find("xnnpack_halves") == 0;
  const double tolerance = has_halves ? 4e-3 : by_engine ? 2e-5 : 1e-6;
  CpuBackend cpu;
  XnnpackBackend xnnpack;
  BackendTable table;
  CHECK(table.add(CpuBackend::kId, &cpu).ok());
  CHECK(table.add(XnnpackBackend::kId, &xnnpack).ok());
  ModuleOptions options;
  options.backends = &table;
  Module module;
  CHECK(module.open(path.c_str(), options).ok());
  Result<Method*> loaded = module.method({name.data(), name.size()});
  if (!loaded.ok()) std::fprintf(stderr, "%s: %s\n", path.c_str(), module.message().text());
  CHECK(loaded.ok());
  if (!loaded.ok()) return;
  Method& method = *loaded.value();
  const std::vector<float> ones(1 << 14, 1.0f);
  for (size_t i = 0; i < method.n_inputs(); ++i) {
    const TensorMeta meta = method.meta().input(i).tensor;
    CHECK(meta.nbytes <= ones.size() * sizeof(float));
    const Span<const int32_t> shape =
        sizes.empty() ? meta.shape() : Span<const int32_t>(sizes.at(i).data(), sizes[i].size());
    CHECK(method.set_input(i, HostTensor(meta.dtype, shape, ones.data())).ok());
  }
  const test::KvPages pages;
  method.set_kv_cache(pages.cache());
  const Status status = method.execute();
  if (!status.ok()) std::fprintf(stderr, "%s: %s\n", path.c_str(), method.message().text());
  CHECK(status.ok() && method.n_outputs() == expected.numbers.size());
  for (size_t i = 0; status.ok() && i < method.n_outputs(); ++i) {
    compare(method.output(i), expected.numbers[i], expected.texts[i], tolerance);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  std::string text;
  std::FILE* file = std::fopen((folder + "/expected.json").c_str(), "rb");
  CHECK(file != nullptr);
  if (file == nullptr) return 1;
  char buffer[4096];
  size_t n = 0;
  do {
    n = std::fread(buffer, 1, sizeof(buffer), file);
    text.append(buffer, n);
  } while (n == sizeof(buffer));
  std::fclose(file);
  const std::vector<Expected> all = Reader(text).read();
  CHECK(all.size() >= 36);
  for (kernels::Isa isa : kernels::kIsas) {
    if (!kernels::select_isa(isa)) continue;
    for (const Expected& expected : all) {
      const int before = test::failures();
      run(folder, expected);
      if (test::failures() == before) continue;
      std::fprintf(stderr, "%s on %s\n", expected.name.c_str(), kernels::isa_name(isa));
    }
  }
  return test::check_result();
}
