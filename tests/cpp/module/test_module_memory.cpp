// The memory of a module follows the sizes of its tensors: pages are used when a run needs them,
// and released when a much smaller run follows. State stays.
#include <vector>

#include "check.h"
#include "rushlight/module/module.h"
#include "test_kernels.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

constexpr int32_t kBound = 4 << 20;  // elements of 4 bytes
constexpr uint64_t kMiB = uint64_t{1} << 20;

// y = x + 2 * x and z = y + 2 * y, each with up to kBound elements, and a count that every run
// increases by one. The count is between x and y in memory; z, planned or not, is after them.
Plan growing_plan(bool z_is_planned) {
  Plan plan;
  TensorOptions at;
  at.dynamism = 1;
  const int32_t x = plan.tensor({kBound}, at);
  TensorOptions between;
  between.offset = 4 * uint64_t{kBound};
  const int32_t count = plan.tensor({1}, between);
  at.offset = between.offset + 64;
  const int32_t y = plan.tensor({kBound}, at);
  at.offset += 4 * uint64_t{kBound};
  if (!z_is_planned) at.memory_id = -1;
  const int32_t z = plan.tensor({kBound}, at);
  plan.arenas = {0, static_cast<int64_t>(at.offset) + 4 * int64_t{kBound}};
  TensorOptions constant;
  constant.memory_id = -1;
  constant.constant = 1;
  const int32_t one = plan.tensor({1}, constant);
  const int32_t alpha = plan.integer(2);
  plan.call("aten::add", {x, x, alpha, y, y});
  plan.call("aten::add", {y, y, alpha, z, z});
  plan.call("aten::add", {count, one, plan.integer(1), count, count});
  plan.inputs = {x};
  plan.outputs = {z, count};
  return plan;
}

ProgramFile growing_file(bool z_is_planned) {
  ProgramFile file;
  file.plans = {growing_plan(z_is_planned)};
  const float one = 1;
  file.segments = {std::vector<uint8_t>(4)};
  std::memcpy(file.segments[0].data(), &one, 4);
  file.constants = {0, 0};
  return file;
}

// Runs with n ones, and checks that z is 9 everywhere and the count is as expected.
void run(Method& method, int32_t n, float count) {
  const std::vector<float> ones(static_cast<size_t>(n), 1.0f);
  CHECK(method.set_input(0, HostTensor(DType::Float32, {n}, ones.data())).ok());
  CHECK(method.execute().ok());
  const Tensor& z = method.output(0).tensor();
  CHECK(z.numel == n);
  bool right = true;
  for (int32_t i = 0; i < n; ++i) right = right && z.as<float>()[i] == 9;
  CHECK(right && first(method.output(1)) == count);
}

void test_memory_follows_sizes(bool z_is_planned) {
  const std::vector<uint8_t> file = growing_file(z_is_planned).bytes();
  ModuleOptions options;
  options.kernels = &test_kernels();
  Module module;
  CHECK(module.open_memory(file.data(), file.size(), options).ok());
  Result<Method*> method = module.method("forward");
  CHECK(method.ok());
  CHECK(module.memory_in_use() > 48 * kMiB);
  CHECK(module.memory_resident() < kMiB);  // loaded, but not run yet
  const auto is_about = [&module](uint64_t bytes) {
    return module.memory_resident() >= bytes && module.memory_resident() < bytes + kMiB;
  };
  run(*method.value(), 1000, 1);
  CHECK(is_about(0));
  run(*method.value(), kBound, 2);
  CHECK(is_about(48 * kMiB));
  run(*method.value(), kBound / 2 + 1, 3);  // not much smaller
  CHECK(is_about(48 * kMiB));
  run(*method.value(), kBound / 4, 4);
  CHECK(is_about(12 * kMiB));
  for (int k = 0; k < 3; ++k) run(*method.value(), 1000, static_cast<float>(5 + k));
  CHECK(is_about(0));
  run(*method.value(), kBound, 8);
  CHECK(is_about(48 * kMiB));
}

// The same at the end of a sequence of steps.
void test_steps() {
  const std::vector<uint8_t> file = growing_file(true).bytes();
  ModuleOptions options;
  options.kernels = &test_kernels();
  Module module;
  CHECK(module.open_memory(file.data(), file.size(), options).ok());
  Method& method = *module.method("forward").value();
  run(method, kBound, 1);
  const float one = 1;
  CHECK(method.set_input(0, HostTensor(DType::Float32, {1}, &one)).ok());
  Status status;
  while (status.ok()) status = method.step();
  CHECK(status.code() == Code::EndOfMethod && method.reset().ok());
  CHECK(first(method.output(0)) == 9 && first(method.output(1)) == 2);
  CHECK(module.memory_resident() < kMiB);
}

}  // namespace

int main() {
  test_memory_follows_sizes(true);
  test_memory_follows_sizes(false);
  test_steps();
  return check_result();
}
