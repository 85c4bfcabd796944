// The desktop facade: files, memory limits, shared arenas, clones, data files.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

#include "check.h"
#include "data_builder.h"
#include "rushlight/module/module.h"
#include "test_kernels.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

ModuleOptions with_test_kernels() {
  ModuleOptions options;
  options.kernels = &test_kernels();
  return options;
}

// A temporary file of the test, removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::vector<uint8_t>& bytes) {
    path_ = "test_module_" + std::to_string(reinterpret_cast<uintptr_t>(this)) + ".pte";
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    CHECK(file != nullptr);
    for (const uint8_t byte : bytes) std::fputc(byte, file);
    std::fclose(file);
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

void run_add(Module& module) {
  Result<Method*> loaded = module.method("forward");
  CHECK(loaded.ok());
  if (!loaded.ok()) return;
  Method& method = *loaded.value();
  float x[] = {1, 2, 3, 4, 5, 6};
  CHECK(method.set_input(0, HostTensor(DType::Float32, {2, 3}, x)).ok());
  CHECK(method.execute().ok());
  CHECK(method.output(0).tensor().as<float>()[5] == 18);
}

void test_open() {
  const TemporaryFile file(file_of(add_plan()));
  Module module;
  CHECK(!module.is_open() && module.method("forward").status().code() == Code::InvalidState);
  CHECK(module.open("no such file.pte").code() == Code::AccessFailed);
  CHECK(says(module.message(), "no such file.pte: no such file: check the path"));
  CHECK(module.open(".").code() == Code::AccessFailed);
  CHECK(module.open(file.path(), with_test_kernels()).ok());
  CHECK(module.program().n_methods() == 1 && !module.is_loaded("forward"));
  run_add(module);
  CHECK(module.is_loaded("forward") && module.memory_in_use() > 0);
  module.unload("forward");
  CHECK(!module.is_loaded("forward") && module.memory_in_use() == 0);
  run_add(module);
  CHECK(module.method("backward").status().code() == Code::InvalidArgument);
  CHECK(module.open(file.path(), with_test_kernels()).ok());  // replaces the open program
  run_add(module);
  const TemporaryFile bad({1, 2, 3});
  CHECK(module.open(bad.path()).code() == Code::InvalidProgram);
  run_add(module);  // still the previous program
  const TemporaryFile empty({});
  CHECK(module.open(empty.path()).code() == Code::InvalidProgram);
}

// Every use of a guarded file that was truncated is an error. Destroying what was loaded reads no
// file.
void test_guard() {
  const std::vector<uint8_t> bytes = file_of(add_plan());
  for (const bool map : {true, false}) {
    const TemporaryFile file(bytes);
    ModuleOptions options = with_test_kernels();
    options.guard = true;
    options.map = map;
    Module module, clone;
    CHECK(module.open(file.path(), options).ok());
    run_add(module);
    Result<Method*> loaded = module.method("forward");
    std::fclose(std::fopen(file.path(), "wb"));
    if (!map) {
      run_add(module);
      continue;
    }
    Method& method = *loaded.value();
    const float x[6] = {};
    CHECK(method.set_input(0, HostTensor(DType::Float32, {2, 3}, x)).code() == Code::AccessFailed);
    CHECK(says(method.message(), "was changed after it was loaded: it had"));
    CHECK(method.execute().code() == Code::AccessFailed);
    CHECK(method.failed_instruction() == Method::kNoInstruction);
    CHECK(method.step().code() == Code::AccessFailed);
    CHECK(module.check_files().code() == Code::AccessFailed);
    CHECK(module.method("forward").status().code() == Code::AccessFailed);
    CHECK(module.memory_use("forward").status().code() == Code::AccessFailed);
    CHECK(module.state().status().code() == Code::AccessFailed);
    CHECK(module.clone(clone).code() == Code::AccessFailed && !clone.is_open());
    CHECK(module.fork(clone).code() == Code::AccessFailed);
  }
}

void test_memory_limit() {
  const std::vector<uint8_t> file = file_of(add_plan());
  Module module;
  CHECK(module.open_memory(file.data(), file.size(), with_test_kernels()).ok());
  const uint64_t needed = module.memory_use("forward")->total();
  for (const uint64_t limit : {needed, needed - 1}) {
    ModuleOptions options = with_test_kernels();
    options.memory_limit = limit;
    CHECK(module.open_memory(file.data(), file.size(), options).ok());
    const Status status = module.load("forward");
    CHECK(status.ok() == (limit == needed));
    if (status.ok()) CHECK(module.memory_in_use() <= limit);
    if (!status.ok()) {
      CHECK(status.code() == Code::OutOfResources && module.memory_in_use() == 0);
      CHECK(says(module.message(), ("the memory limit is " + std::to_string(limit)).c_str()));
      CHECK(says(module.message(), ("forward takes " + std::to_string(needed)).c_str()));
    }
  }
}

float count(Module& module, const char* name) {
  Result<Method*> method = module.method(name);
  CHECK(method.ok() && method.value()->execute().ok());
  return method.ok() ? method.value()->output(0).tensor().as<float>()[0] : NAN;
}

// The initial content comes from any method that has one, once, before any method runs.
void test_shared_state_and_clones() {
  const std::vector<uint8_t> file = counting_file();
  Module copy;
  {
    Module module;
    CHECK(module.open_memory(file.data(), file.size(), with_test_kernels()).ok());
    CHECK(module.memory_use("up")->shared_arenas == 64);
    CHECK(count(module, "up") == 11 && count(module, "up") == 12);
    CHECK(count(module, "also_up") == 13 && count(module, "up") == 14);
    CHECK(module.clone(copy).ok());
    CHECK(count(copy, "up") == 11);
    CHECK(count(module, "up") == 15);
    module.unload("up");
    module.unload("also_up");
    CHECK(module.memory_in_use() == 64 && count(module, "up") == 16);
  }
  CHECK(count(copy, "also_up") == 12);  // the program stays after the module that opened it
}

// An unplanned output gets memory from the module.
void test_unplanned_output() {
  Plan plan = add_plan();
  TensorOptions bare;
  bare.memory_id = -1;
  plan.values[1] = Table().choice(0, 5, tensor_table({2, 3}, bare));
  const std::vector<uint8_t> file = file_of(plan);
  Module module;
  CHECK(module.open_memory(file.data(), file.size(), with_test_kernels()).ok());
  CHECK(module.memory_use("forward")->outputs == 64);
  run_add(module);
}

void test_missing() {
  Plan plan = add_plan();
  plan.call("aten::mul", {0});
  const std::vector<uint8_t> file = file_of(plan);
  Module module;
  CHECK(module.open_memory(file.data(), file.size(), with_test_kernels()).ok());
  CHECK(module.failed_method() == nullptr);
  CHECK(module.load("forward").code() == Code::OperatorMissing);
  uint32_t cursor = 0;
  MissingOperator missing;
  const Method* failed = module.failed_method();
  CHECK(failed != nullptr && failed->next_missing_operator(&cursor, &missing));
  CHECK(missing.instruction == 1 && says(module.message(), "aten::mul.out"));
}

std::vector<uint8_t> data_file(const char* key, const std::vector<int32_t>& sizes) {
  return test::data_file({string_of(key)}, sizes);
}

// y = w + w, with w in a data file: as a constant, and as the initial content of planned memory.
void test_external_data() {
  for (const int memory_id : {-1, 1}) {
    Plan plan;
    TensorOptions external;
    external.external = true;
    external.name = "l.weight";
    external.memory_id = memory_id;
    const int32_t w = plan.tensor({2}, external);
    TensorOptions at;
    at.offset = 16;
    const int32_t y = plan.tensor({2}, at);
    plan.call("aten::add", {w, w, plan.integer(1), y, y});
    plan.outputs = {y};
    const std::vector<uint8_t> file = file_of(plan);
    std::vector<uint64_t> aligned(100);
    Module module;
    const auto open = [&](const std::vector<uint8_t>& data) {
      if (!data.empty()) std::memcpy(aligned.data(), data.data(), data.size());
      CHECK(module.open_memory(file.data(), file.size(), with_test_kernels()).ok());
      return module.add_data_memory(aligned.data(), data.size());
    };
    const std::vector<uint8_t> good = data_file("l.weight", {2});
    CHECK(open(good).ok());
    CHECK(module.add_data_memory(aligned.data(), good.size()).code() == Code::InvalidArgument);
    CHECK(says(module.message(), "'l.weight' is in two of the data files"));
    Result<Method*> method = module.method("forward");
    CHECK(method.ok() && method.value()->execute().ok());
    if (method.ok()) CHECK(method.value()->output(0).tensor().as<float>()[1] == 5);
    CHECK(module.add_data_memory(aligned.data(), good.size()).code() == Code::InvalidState);

    CHECK(open(data_file("l.bias", {2})).ok());
    CHECK(module.load("forward").code() == Code::NotFound);
    CHECK(says(module.message(), "there is no 'l.weight' in the data"));
    CHECK(open(data_file("l.weight", {2, 1})).ok());
    CHECK(module.load("forward").code() == Code::InvalidExternalData);
    CHECK(open(data_file("l.weight", {-2})).code() == Code::InvalidExternalData);
    for (size_t size = 0; size < good.size(); ++size) {
      CHECK(open({good.begin(), good.begin() + static_cast<long>(size)}).code() ==
            Code::InvalidExternalData);
    }
    CHECK(module.open_memory(file.data(), file.size(), with_test_kernels()).ok());
    CHECK(module.load("forward").code() == Code::NotFound);
    CHECK(says(module.message(), "no data file was given"));
  }
}

void test_threads() {
  const std::vector<uint8_t> file = file_of(add_plan());
  for (const size_t threads : {size_t{0}, size_t{1}, size_t{2}, size_t{5}}) {
    ModuleOptions options = with_test_kernels();
    options.threads = threads;
    Module module;
    CHECK(module.open_memory(file.data(), file.size(), options).ok());
    // 1 in a build without threads.
    CHECK(module.threads() == PoolWorkers(threads != 0 ? threads : usable_cores()).count());
    for (int run = 0; run < 20; ++run) run_add(module);
    Module copy;
    CHECK(module.clone(copy).ok() && copy.threads() == module.threads());
    run_add(copy);
  }
}

void test_host_tensor() {
  const float data[] = {1, 2};
  const HostTensor good(DType::Float32, {1, 2}, data);
  HostTensor copy(DType::Float32, {0}, nullptr);
  copy = good;
  CHECK(good.valid() && copy.valid() && copy.tensor().sizes != good.tensor().sizes);
  CHECK(copy.tensor().size(1) == 2 && copy.tensor().numel == 2);
  CHECK(!HostTensor(DType::Float32, {-1}, data).valid());
  const int32_t many[17] = {};
  CHECK(!HostTensor(DType::Float32, {many, 17}, data).valid());
  const uint8_t twice[] = {0, 0};
  CHECK(!HostTensor(DType::Float32, Span<const int32_t>(many, 2), data, twice).valid());
}

}  // namespace

int main() {
  test_open();
#if defined(__unix__) || defined(__APPLE__)
  test_guard();
#endif
  test_memory_limit();
  test_shared_state_and_clones();
  test_unplanned_output();
  test_missing();
  test_external_data();
  test_threads();
  test_host_tensor();
  return check_result();
}
