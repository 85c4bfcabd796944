// The tables of kernels and backends, keys, and the check of arguments against a signature.
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "rushlight/delegate/backend.h"
#include "test_kernels.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

// A tensor value with these dims and only the fields that keys use.
struct Value {
  Value(DType dtype, std::vector<uint8_t> order) : dim_order(std::move(order)) {
    tensor.dtype = dtype;
    tensor.rank = static_cast<uint8_t>(dim_order.size());
    tensor.dim_order = dim_order.data();
    value.tag = Tag::Tensor;
    value.t = &tensor;
  }
  std::vector<uint8_t> dim_order;
  Tensor tensor;
  EValue value;
};

void test_lookup() {
  static const Kernel kKernels[] = {
      {"b::op.out", "", nothing}, {"a::op", "", nothing}, {"a::op.out", "", nothing}};
  KernelTable table;
  CHECK(table.add(kKernels).ok() && table.size() == 3);
  for (const Kernel& kernel : kKernels) CHECK(table.find(kernel.name, nullptr, 0) == &kernel);
  CHECK(table.find("a::o", nullptr, 0) == nullptr && !table.has("a::op.out2"));
  CHECK(!table.has(StringView("a::op\0x", 7)) && !table.has("") && table.has("a::op"));
  CHECK(table.add(kKernels).code() == Code::RegistrationAlreadyRegistered && table.size() == 3);
  static const Kernel kTwice[] = {{"c::op", "", nothing}, {"c::op", "", nothing}};
  CHECK(table.add(kTwice).code() == Code::RegistrationAlreadyRegistered);
  CHECK(table.size() == 3 && !table.has("c::op"));  // none of them was added
}

void test_capacity() {
  static KernelTable table;
  static std::vector<std::string> names;
  static std::vector<Kernel> kernels;
  for (size_t i = 0; i <= KernelTable::kCapacity; ++i) names.push_back("op" + std::to_string(i));
  for (const std::string& name : names) kernels.push_back({name.c_str(), "", nothing, nullptr});
  const Span<const Kernel> all(kernels.data(), kernels.size());
  CHECK(table.add(all).code() == Code::RegistrationExceedingMaxKernels && table.size() == 0);
  CHECK(table.add({all.data(), KernelTable::kCapacity}).ok());
  for (size_t i = 0; i < KernelTable::kCapacity; ++i) CHECK(table.has(kernels[i].name));
  CHECK(table.add({all.end() - 1, 1}).code() == Code::RegistrationExceedingMaxKernels);
}

void test_keys() {
  static const Kernel kKernels[] = {{"op", "tst=", nothing, nullptr},
                                    {"op", "tst=", nothing, "v1/6;0,1|6;0,1"},
                                    {"op", "tst=", nothing, "v1/6;1,0|6;0,1"},
                                    {"op", "tst=", nothing, "v1/3;|3;"},
                                    {"op", "tst=", nothing, "v2/6;0,1|6;0,1"}};
  KernelTable table;
  CHECK(table.add(kKernels).ok());
  Value rows(DType::Float32, {0, 1}), columns(DType::Float32, {1, 0}), scalar(DType::Int32, {});
  Value other(DType::Float64, {0, 1});
  EValue number;
  number.set_int(1);
  const auto find = [&](Value& a, Value& b) {
    EValue* args[] = {&a.value, &number, &b.value, &b.value};
    return table.find("op", args, 4);
  };
  CHECK(find(rows, rows) == &kKernels[1]);
  CHECK(find(columns, rows) == &kKernels[2]);
  CHECK(find(scalar, scalar) == &kKernels[3]);
  CHECK(find(rows, columns) == &kKernels[0] && find(other, rows) == &kKernels[0]);
  CHECK(find(scalar, rows) == &kKernels[0]);
}

void test_arguments() {
  Value tensor(DType::Float32, {0});
  EValue values[12];
  const Tag tags[] = {
      Tag::None,     Tag::String,     Tag::Double,  Tag::Int,        Tag::Bool,
      Tag::BoolList, Tag::DoubleList, Tag::IntList, Tag::TensorList, Tag::OptionalTensorList};
  for (size_t i = 0; i < 10; ++i) values[i].tag = tags[i];
  values[10] = tensor.value;
  // For each letter the tags that it accepts, in the order above, then the tensor.
  const struct {
    const char* signature;
    const char* fits;
  } cases[] = {
      {"t", "00000000001"},  {"?t", "10000000001"}, {"S", "01000000000"}, {"i", "00111000000"},
      {"d", "00111000000"},  {"b", "00111000000"},  {"s", "00111000000"}, {"r", "00111000000"},
      {"?i", "10111000000"}, {"B", "00000100000"},  {"D", "00000010000"}, {"I", "00000001000"},
      {"T", "00000000100"},  {"O", "00000000010"},  {"=", "11111111111"}, {"w", "00000000001"},
      {"W", "00000000100"},  {"?I", "10000001000"}, {"x", "00000000000"}};
  Message message;
  for (const auto& c : cases) {
    const Kernel kernel = {"op", c.signature, nothing, nullptr};
    for (size_t i = 0; i < 11; ++i) {
      EValue* args[] = {&values[i]};
      CHECK(check_arguments(kernel, args, 1, message).ok() == (c.fits[i] == '1'));
    }
  }
  const Kernel two = {"op", "t?I=", nothing, nullptr};
  EValue* args[] = {&values[10], &values[3], &values[10], &values[10]};
  CHECK(check_arguments(two, args, 3, message).code() == Code::InvalidProgram);
  CHECK(std::strcmp(message.text(),
                    "argument 1 is Int, but the operator takes an IntList or None") == 0);
  args[1] = &values[0];
  CHECK(check_arguments(two, args, 3, message).ok());
  for (size_t n : {0, 2, 4}) {
    CHECK(check_arguments(two, args, n, message).code() == Code::InvalidProgram);
    CHECK(std::strstr(message.text(), "arguments, but the operator takes 3") != nullptr);
  }
}

// An operator must not write data that it reads to decide.
void test_written() {
  int64_t memory[8] = {};
  int32_t sizes[] = {4};
  int32_t strides[] = {1};
  const uint8_t order[] = {0};
  const auto tensor = [&](DType dtype, int64_t* data, Dynamism dynamism) {
    Tensor made;
    made.data = data;
    made.sizes = sizes;
    made.strides = strides;
    made.dim_order = order;
    made.numel = made.capacity = 4;
    made.dtype = dtype;
    made.dynamism = dynamism;
    made.rank = 1;
    return made;
  };
  Tensor floats = tensor(DType::Float32, memory, Dynamism::Static);
  Tensor same_bytes = tensor(DType::Float32, memory, Dynamism::Static);
  Tensor growing = tensor(DType::Float32, memory, Dynamism::Bounded);
  Tensor indices = tensor(DType::Int64, memory, Dynamism::Static);
  Tensor apart = tensor(DType::Int64, memory + 4, Dynamism::Static);
  EValue none;
  const auto value = [](Tensor* tensor) {
    EValue made;
    made.tag = Tag::Tensor;
    made.t = tensor;
    return made;
  };
  EValue f = value(&floats), s = value(&same_bytes), g = value(&growing), i = value(&indices),
         a = value(&apart);
  const EValue* items[] = {&none, &i};
  EValue list;
  list.tag = Tag::OptionalTensorList;
  list.list = {items, 2};
  const struct {
    const char* signature;
    EValue* args[4];
    bool sound;
  } cases[] = {
      {"ttw=", {&f, &a, &s, &s}, true},      // float bytes may be shared
      {"ttw=", {&f, &a, &f, &f}, true},      // the size is fixed
      {"ttw=", {&g, &a, &g, &g}, false},     // changes its own input's sizes
      {"ttw=", {&f, &i, &s, &s}, false},     // overwrites indices
      {"tOw=", {&a, &list, &s, &s}, false},  // the same, in a list
      {"tOw=", {&a, &list, &a, &a}, false},  // an integer input that is written
      {"t?tw=", {&f, &none, &s, &s}, true},  {"wtb=", {&g, &g, &none, &g}, true},  // in place
      {"wOt=", {&s, &list, &f, &s}, false},   // in place, over its own indices
      {"tIw", {&g, &none, &g, &none}, true},  // returns nothing: a view
  };
  Message message;
  for (const auto& c : cases) {
    const Kernel kernel = {"op", c.signature, nothing, nullptr};
    CHECK(check_written(kernel, c.args, 4, message).ok() == c.sound);
  }
}

class FakeBackend : public Backend {
 public:
  bool available() const override { return true; }
  Result<void*> init(BackendInit&) override { return nullptr; }
  Status execute(const BackendRun&, void*, EValue* const*, size_t) override { return {}; }
  void destroy(void*) override {}
};

void test_backends() {
  static const char* kNames[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                 "j", "k", "l", "m", "n", "o", "p", "q"};
  FakeBackend backend;
  BackendTable table;
  for (size_t i = 0; i < BackendTable::kCapacity; ++i) CHECK(table.add(kNames[i], &backend).ok());
  CHECK(table.add("a", &backend).code() == Code::RegistrationAlreadyRegistered);
  CHECK(table.add("q", &backend).code() == Code::OutOfResources);
  CHECK(table.find("p") == &backend && table.find("q") == nullptr && table.size() == 16);
}

}  // namespace

int main() {
  test_lookup();
  test_capacity();
  test_keys();
  test_arguments();
  test_written();
  test_backends();
  return check_result();
}
