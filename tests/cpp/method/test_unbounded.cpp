// Tensors without bounds: they allocate memory from the caller's allocator when they need it, and
// free it.
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "check.h"
#include "rushlight/module/module.h"
#include "test_kernels.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

// Records its blocks, and allocates no more than `limit` bytes.
class Blocks final : public BlockAllocator {
 public:
  size_t limit = SIZE_MAX;
  size_t calls = 0;
  size_t taken() const {
    size_t sum = 0;
    for (const auto& [block, bytes] : blocks_) sum += bytes;
    return sum;
  }
  void* allocate(size_t bytes) override {
    ++calls;
    if (bytes > limit || taken() > limit - bytes) return nullptr;
    void* block = std::malloc(bytes);
    blocks_[block] = bytes;
    return block;
  }
  void free(void* block, size_t bytes) override {
    const auto entry = blocks_.find(block);
    CHECK(entry != blocks_.end() && entry->second == bytes);
    blocks_.erase(block);
    std::free(block);
  }

 private:
  std::map<void*, size_t> blocks_;
};

TensorOptions unbounded() {
  TensorOptions options;
  options.memory_id = -1;
  options.dynamism = 2;
  return options;
}

// middle = x + 2 * x, z = middle + 2 * middle, all without bounds. With `frees`, middle is freed.
Plan chain_plan(bool frees) {
  Plan plan;
  const int32_t x = plan.tensor({1}, unbounded());
  const int32_t middle = plan.tensor({0}, unbounded());
  const int32_t z = plan.tensor({1 << 30}, unbounded());
  const int32_t alpha = plan.integer(2);
  plan.call("aten::add", {x, x, alpha, middle, middle});
  plan.call("aten::add", {middle, middle, alpha, z, z});
  if (frees) plan.free(middle);
  plan.inputs = {x};
  plan.outputs = {z};
  return plan;
}

Status run(Method& method, size_t n) {
  const std::vector<float> ones(n, 1.0f);
  const int32_t size = static_cast<int32_t>(n);
  RL_TRY(method.set_input(0, HostTensor(DType::Float32, {size}, ones.data())));
  RL_TRY(method.execute());
  const Tensor& z = method.output(0).tensor();
  CHECK(z.numel == size);
  for (size_t i = 0; i < n; ++i) CHECK(z.as<float>()[i] == 9);
  return {};
}

void test_takes_what_it_needs() {
  for (const bool frees : {true, false}) {
    Blocks blocks;
    {
      Loaded loaded(file_of(chain_plan(frees)));
      MethodOptions options = {};
      options.blocks = &blocks;
      CHECK(loaded.load("forward", options).ok() && blocks.calls == 0);
      CHECK(!loaded.method.output_needs_data(0));
      for (const size_t n : {5, 1000, 100000, 70000, 0, 1, 100000}) {
        CHECK(run(loaded.method, n).ok());
        const size_t one = 4 * n;
        CHECK(blocks.taken() >= (frees ? one : 2 * one));
      }
      CHECK(run(loaded.method, 10).ok());
      CHECK(blocks.taken() < 1000);  // much smaller blocks have replaced the large ones
      const size_t calls = blocks.calls;
      for (int k = 0; k < 3; ++k) CHECK(run(loaded.method, 10).ok());
      CHECK(blocks.calls == (frees ? calls + 3 : calls));  // blocks that are not freed are reused
    }
    CHECK(blocks.taken() == 0);
  }
}

void test_no_memory() {
  Loaded refused(file_of(chain_plan(true)));
  CHECK(refused.load().code() == Code::NotSupported);
  CHECK(says(refused.message, "forward: value 0: a tensor without upper bound takes memory"));
  CHECK(says(refused.message, "MethodOptions::blocks"));

  Blocks blocks;
  blocks.limit = 10000;
  Loaded loaded(file_of(chain_plan(true)));
  MethodOptions options = {};
  options.blocks = &blocks;
  CHECK(loaded.load("forward", options).ok());
  CHECK(run(loaded.method, 100).ok());
  CHECK(run(loaded.method, 5000).code() == Code::MemoryAllocationFailed);
  CHECK(says(loaded.method.message(),
             "instruction 0 (aten::add.out): the result has sizes (5000,)"
             " of 4 bytes an element, and there is no memory for that"));
  CHECK(run(loaded.method, 200).ok());
}

// A view of a tensor that grows or is freed while the view exists still reads the old content.
void test_views_of_blocks() {
  for (const bool frees : {true, false}) {
    Plan plan;
    const int32_t x = plan.tensor({1}, unbounded());
    const int32_t big = plan.tensor({1}, unbounded());
    const int32_t y = plan.tensor({1}, unbounded());
    const int32_t view = plan.tensor({3}, unbounded());
    const int32_t z = plan.tensor({1}, unbounded());
    const int32_t zero = plan.integer(0);
    const int32_t sizes = plan.int_list({plan.integer(3)});
    plan.call("aten::add", {x, x, zero, y, y});
    plan.call("executorch_prim::et_view", {y, sizes, view}, "default");
    if (frees) plan.free(y);
    if (!frees) plan.call("aten::add", {big, big, zero, y, y});
    plan.call("aten::add", {view, view, zero, z, z});
    plan.inputs = {x, big};
    plan.outputs = {z};
    Blocks blocks;
    {
      Loaded loaded(file_of(plan));
      MethodOptions options = {};
      options.blocks = &blocks;
      options.kernels = default_kernels() != nullptr ? default_kernels() : &test_kernels();
      CHECK(loaded.load("forward", options).ok());
      const std::vector<float> twos(100000, 2.0f);
      for (int k = 0; k < 3; ++k) {
        CHECK(loaded.method.set_input(0, HostTensor(DType::Float32, {3}, twos.data())).ok());
        CHECK(loaded.method.set_input(1, HostTensor(DType::Float32, {100000}, twos.data())).ok());
        CHECK(loaded.method.execute().ok());
        CHECK(loaded.method.output(0).tensor().numel == 3 && first(loaded.method.output(0)) == 2);
      }
    }
    CHECK(blocks.taken() == 0);
  }
}

// The desktop module has a heap for them, which counts memory and obeys the memory limit.
void test_module() {
  const std::vector<uint8_t> file = file_of(chain_plan(false));
  ModuleOptions options;
  options.kernels = &test_kernels();
  Module module;
  CHECK(module.open_memory(file.data(), file.size(), options).ok());
  const uint64_t fixed = module.memory_use("forward")->total();
  options.memory_limit = fixed + (1 << 20);
  CHECK(module.open_memory(file.data(), file.size(), options).ok());
  Method& method = *module.method("forward").value();
  const uint64_t loaded = module.memory_in_use();
  CHECK(run(method, 100000).ok());
  CHECK(module.memory_in_use() >= loaded + 800000 && module.memory_resident() >= 800000);
  CHECK(run(method, 200000).code() == Code::MemoryAllocationFailed);
  CHECK(run(method, 10).ok());
  CHECK(module.memory_in_use() < loaded + 1000);
  module.unload("forward");
  CHECK(module.memory_in_use() == 0);
}

}  // namespace

int main() {
  test_takes_what_it_needs();
  test_no_memory();
  test_views_of_blocks();
  test_module();
  return check_result();
}
