// A loaded method: instructions, state, views, steps, failures.
#include <cstring>

#include "check.h"
#include "rushlight/module/module.h"
#include "test_kernels.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

void test_runs() {
  Loaded loaded(file_of(add_plan()));
  CHECK(loaded.opened.ok());
  CHECK(loaded.load().ok());
  float x[] = {1, 2, 3, 4, 5, 6};
  CHECK(loaded.method.execute().code() == Code::InvalidState);
  CHECK(says(loaded.method.message(), "forward: input 0 was never set"));
  CHECK(loaded.method.set_input(0, HostTensor(DType::Float32, {2, 3}, x)).ok());
  CHECK(loaded.method.execute().ok());
  const Tensor& y = loaded.method.output(0).tensor();
  for (int i = 0; i < 6; ++i) CHECK(y.as<float>()[i] == 3 * x[i]);
  CHECK(loaded.method.execute().ok());  // inputs stay set
  CHECK(loaded.method.message().empty());
}

// if flag: out = x else: out = y, in the form that exporters write.
Status specialised_add(KernelContext& context, EValue* const* args) {
  RL_TRY(add_out(context, args));
  args[3]->tensor().as<float>()[0] = -1;  // which the general kernel never returns
  return {};
}

// A method uses the kernel whose key matches the dtypes and dim orders of its tensors.
void test_specialised_kernel() {
  static const Kernel kKernels[] = {
      {"aten::add.out", "ttsw=", add_out},
      {"aten::add.out", "ttsw=", specialised_add, "v1/6;1,0|6;1,0|6;1,0"}};
  static const Kernel kOnlyInt[] = {{"aten::add.out", "ttsw=", add_out, "v1/3;0,1|3;0,1|3;0,1"}};
  KernelTable table, other;
  CHECK(table.add(kKernels).ok() && other.add(kOnlyInt).ok());
  MethodOptions options = {};
  options.kernels = &table;
  for (const bool columns : {false, true}) {
    TensorOptions at;
    if (columns) at.dim_order = {1, 0};
    Plan plan;
    const int32_t x = plan.tensor({2, 3}, at);
    at.offset = 32;
    const int32_t y = plan.tensor({2, 3}, at);
    plan.call("aten::add", {x, x, plan.integer(2), y, y});
    plan.inputs = {x};
    plan.outputs = {y};
    Loaded loaded(file_of(plan));
    CHECK(loaded.opened.ok() && loaded.load("forward", options).ok());
    const float data[] = {1, 2, 3, 4, 5, 6};
    CHECK(loaded.method.set_input(0, HostTensor(DType::Float32, {2, 3}, data)).ok());
    CHECK(loaded.method.execute().ok());
    CHECK(first(loaded.method.output(0)) == (columns ? -1.0F : 3.0F));
    CHECK(loaded.method.output(0).tensor().as<float>()[5] == 18);
  }
  options.kernels = &other;
  Loaded loaded(file_of(add_plan()));
  CHECK(loaded.load("forward", options).code() == Code::OperatorMissing);
  uint32_t cursor = 0;
  MissingOperator missing;
  CHECK(loaded.method.next_missing_operator(&cursor, &missing) && missing.other_types);
}

void test_jump_and_move() {
  Plan plan;
  TensorOptions flag_options;
  flag_options.dtype = 11;
  const int32_t flag = plan.tensor({2}, flag_options);
  TensorOptions at;
  at.offset = 16;
  const int32_t x = plan.tensor({2}, at);
  at.offset = 32;
  const int32_t y = plan.tensor({2}, at);
  at.offset = 48;
  const int32_t out = plan.tensor({2}, at);
  const int32_t never = plan.boolean(false);
  plan.jump_false(flag, 3);
  plan.move(x, out);
  plan.jump_false(never, 4);
  plan.move(y, out);
  plan.inputs = {flag, x, y};
  plan.outputs = {out};
  Loaded loaded(file_of(plan));
  CHECK(loaded.load().ok());
  float a[] = {1, 1}, b[] = {2, 2};
  CHECK(loaded.method.set_input(1, HostTensor(DType::Float32, {2}, a)).ok());
  CHECK(loaded.method.set_input(2, HostTensor(DType::Float32, {2}, b)).ok());
  const struct {
    uint8_t flags[2];
    float result;
  } cases[] = {{{1, 1}, 1}, {{1, 0}, 2}, {{0, 1}, 2}, {{1, 1}, 1}};
  for (const auto& c : cases) {
    CHECK(loaded.method.set_input(0, HostTensor(DType::Bool, {2}, c.flags)).ok());
    CHECK(loaded.method.execute().ok());
    CHECK(first(loaded.method.output(0)) == c.result);
  }
}

// i = 0; do { i += 1 } while (i != 5). A move resets i, so that it can run again.
void test_loop() {
  Plan plan;
  const int32_t zero = plan.integer(0), one = plan.integer(1), five = plan.integer(5);
  const int32_t i = plan.integer(0), done = plan.boolean(false);
  plan.move(zero, i);
  plan.call("executorch_prim::add", {i, one, i}, "Scalar");
  plan.call("executorch_prim::eq", {i, five, done}, "Scalar");
  plan.jump_false(done, 1);
  plan.outputs = {i};
  Loaded loaded(file_of(plan));
  CHECK(loaded.load().ok());
  for (int run = 0; run < 3; ++run) {
    CHECK(loaded.method.execute().ok());
    CHECK(loaded.method.output(0).to_int() == 5);
  }
}

void test_endless_loop_ends() {
  Plan plan;
  plan.jump_false(plan.boolean(false), 0);
  MethodOptions options = {};
  options.max_instructions = 1000;
  Loaded loaded(file_of(plan));
  CHECK(loaded.load("forward", options).ok());
  CHECK(loaded.method.execute().code() == Code::InvalidProgram);
  CHECK(says(loaded.method.message(), "instruction 0 (jump if false): 1000 instructions"));
  Status status;
  for (int i = 0; i < 2000 && status.ok(); ++i) status = loaded.method.step();
  CHECK(status.code() == Code::InvalidProgram);
}

// Before the next kernel with tensors or the next jump, and only while the flag is set.
void test_cancelled_run_ends(const Plan& plan, bool has_tensor, const char* where) {
  std::atomic<bool> cancelled{true};
  MethodOptions options = {};
  options.cancelled = &cancelled;
  Loaded loaded(file_of(plan));
  CHECK(loaded.load("forward", options).ok());
  const float x[6] = {};
  const HostTensor input(DType::Float32, {2, 3}, x);
  if (has_tensor) CHECK(loaded.method.set_input(0, input).ok());
  CHECK(loaded.method.execute().code() == Code::Cancelled);
  CHECK(says(loaded.method.message(), where));
  Status status;
  for (int i = 0; i < 4 && status.ok(); ++i) status = loaded.method.step();
  CHECK(status.code() == Code::Cancelled && says(loaded.method.message(), where));
  cancelled = false;
  CHECK(loaded.method.reset().ok() && loaded.method.execute().ok());
}

void test_cancelled_runs_end() {
  test_cancelled_run_ends(add_plan(), true, "instruction 0 (aten::add.out): the run was cancelled");
  Plan loop;  // of scalars alone
  const int32_t zero = loop.integer(0), one = loop.integer(1), two = loop.integer(2);
  const int32_t i = loop.integer(0), done = loop.boolean(false);
  loop.move(zero, i);
  loop.call("executorch_prim::add", {i, one, i}, "Scalar");
  loop.call("executorch_prim::eq", {i, two, done}, "Scalar");
  loop.jump_false(done, 1);
  loop.outputs = {i};
  test_cancelled_run_ends(loop, false, "instruction 3 (jump if false): the run was cancelled");
}

void test_failure_says_where() {
  Plan plan = add_plan();
  plan.call("test::always_fails", {1}, "");
  Loaded loaded(file_of(plan));
  CHECK(loaded.load().ok());
  float x[6] = {};
  CHECK(loaded.method.set_input(0, HostTensor(DType::Float32, {2, 3}, x)).ok());
  CHECK(loaded.method.execute().code() == Code::InvalidArgument);
  CHECK(
      says(loaded.method.message(), "forward: instruction 1 (test::always_fails): it never works"));
  CHECK(loaded.method.failed_instruction() == 1);
  CHECK(loaded.method.execute().code() == Code::InvalidArgument);  // again from the start
}

void test_steps() {
  Plan plan = add_plan();
  plan.call("test::nothing", {}, "");
  Loaded loaded(file_of(plan));
  CHECK(loaded.load().ok());
  Method& m = loaded.method;
  float x[] = {1, 1, 1, 1, 1, 1};
  const HostTensor input(DType::Float32, {2, 3}, x);
  CHECK(m.step().code() == Code::InvalidState);
  CHECK(m.set_input(0, input).ok());
  for (int run = 0; run < 2; ++run) {
    CHECK(m.program_counter() == 0);
    CHECK(m.step().ok());
    CHECK(m.program_counter() == 1 && first(m.output(0)) == 3);
    CHECK(m.execute().code() == Code::InvalidState);
    CHECK(m.set_input(0, input).code() == Code::InvalidState);
    CHECK(m.reset().code() == Code::InvalidState);
    CHECK(m.step().ok());
    CHECK(m.step().code() == Code::EndOfMethod);
    CHECK(m.reset().ok());
  }
  CHECK(m.set_input(0, input).ok() && m.execute().ok());
}

void test_failed_step_stays() {
  Plan plan;
  const int32_t x = plan.tensor({1});
  plan.call("test::nothing", {}, "");
  plan.call("test::always_fails", {x}, "");
  Loaded loaded(file_of(plan));
  CHECK(loaded.load().ok());
  CHECK(loaded.method.step().ok());
  for (int i = 0; i < 2; ++i) {
    CHECK(loaded.method.step().code() == Code::InvalidArgument);
    CHECK(loaded.method.program_counter() == 1 && loaded.method.failed_instruction() == 1);
  }
  CHECK(loaded.method.reset().ok() && loaded.method.program_counter() == 0);
}

void test_scratch_is_reset() {
  Plan plan;
  for (int i = 0; i < 3; ++i) plan.call("test::greedy", {}, "");
  Loaded loaded(file_of(plan));
  CHECK(loaded.load().ok());
  CHECK(loaded.method.execute().ok());
  CHECK(loaded.method.execute().ok());
}

// One state that starts with 1, 2 from the file, and one that starts with zeros.
void test_mutable_state() {
  Plan plan;
  TensorOptions with_start;
  with_start.constant = 1;
  const int32_t state = plan.tensor({2}, with_start);
  TensorOptions at;
  at.offset = 16;
  const int32_t zeros = plan.tensor({2}, at);
  at.offset = 32;
  const int32_t sum = plan.tensor({2}, at);
  const int32_t one = plan.integer(1);
  const int32_t no = plan.boolean(false);
  plan.call("aten::add", {state, state, one, sum, sum});
  plan.call("aten::copy_", {state, sum, no, state}, "");
  plan.outputs = {state, zeros};
  ProgramFile file;
  file.plans = {plan};
  const float start[] = {1, 2};
  file.segments = {{}, std::vector<uint8_t>(8)};
  std::memcpy(file.segments[1].data(), start, 8);
  file.states = {0, 0};
  Loaded loaded(file.bytes());
  CHECK(loaded.opened.ok());
  CHECK(loaded.load().ok());
  CHECK(loaded.method.output(0).tensor().as<float>()[1] == 2);
  CHECK(first(loaded.method.output(1)) == 0);  // the arena was filled with other bytes
  CHECK(loaded.method.execute().ok() && loaded.method.execute().ok());
  CHECK(first(loaded.method.output(0)) == 4);
}

// Constants are in the image, aligned or not, and must not be written.
void test_constants() {
  for (const uint64_t offset : {0u, 1u}) {
    Plan plan;
    TensorOptions options;
    options.memory_id = -1;
    options.constant = 1;
    const int32_t weight = plan.tensor({2}, options);
    const int32_t out = plan.tensor({2});
    const int32_t one = plan.integer(1);
    plan.call("aten::add", {weight, weight, one, out, out});
    plan.outputs = {out, weight};
    ProgramFile file;
    const float values[] = {1.5, 2.5};
    file.segments = {std::vector<uint8_t>(16)};
    std::memcpy(file.segments[0].data() + offset, values, 8);
    file.constants = {0, offset};
    file.plans = {plan};
    Loaded loaded(file.bytes());
    CHECK(loaded.load().ok());
    CHECK(loaded.method.execute().ok());
    CHECK(first(loaded.method.output(0)) == 3);
    const auto* data = loaded.method.output(1).tensor().as<uint8_t>();
    const Span<const uint8_t> image = loaded.program.image();
    CHECK((data >= image.begin() && data < image.end()) == (offset == 0));
  }
  Plan plan;
  TensorOptions options;
  options.memory_id = -1;
  options.constant = 1;
  const int32_t weight = plan.tensor({2}, options);
  plan.call("aten::add", {weight, weight, plan.integer(1), weight, weight});
  ProgramFile file;
  file.segments = {std::vector<uint8_t>(16)};
  file.constants = {0, 0};
  file.plans = {plan};
  Loaded loaded(file.bytes());
  CHECK(loaded.load().ok());
  CHECK(loaded.method.execute().code() == Code::NotSupported);
  CHECK(says(loaded.method.message(), "is a constant of the program"));
}

// A view gives memory to values without any. Kernels never get values without memory.
void test_bare_tensors() {
  for (const bool with_view : {true, false}) {
    Plan plan;
    const int32_t x = plan.tensor({2});
    TensorOptions bare;
    bare.memory_id = -1;
    const int32_t view = plan.tensor({2}, bare);
    TensorOptions at;
    at.offset = 16;
    const int32_t out = plan.tensor({2}, at);
    const int32_t two = plan.integer(2);
    const int32_t sizes = plan.int_list({two});
    if (with_view) plan.call("executorch_prim::et_view", {x, sizes, view}, "default");
    plan.call("aten::add", {view, view, two, out, out});
    plan.inputs = {x};
    plan.outputs = {out};
    Loaded loaded(file_of(plan));
    CHECK(loaded.load().ok());
    float data[] = {1, 1};
    CHECK(loaded.method.set_input(0, HostTensor(DType::Float32, {2}, data)).ok());
    CHECK(loaded.method.execute().ok() == with_view);
    if (with_view) CHECK(first(loaded.method.output(0)) == 3);
    if (!with_view) CHECK(says(loaded.method.message(), "argument 0 has no memory"));
  }
}

// A view of the caller's memory ends with the run: the next run starts without it.
void test_views_start_anew() {
  Plan plan;
  TensorOptions bare;
  bare.memory_id = -1;
  const int32_t x = plan.tensor({2}, bare);
  const int32_t view = plan.tensor({2});
  TensorOptions at;
  at.offset = 16;
  const int32_t out = plan.tensor({2}, at);
  const int32_t one = plan.integer(1);
  const int32_t sizes = plan.int_list({plan.integer(2)});
  plan.call("aten::add", {view, view, one, out, out});  // before the view is created
  plan.call("executorch_prim::et_view", {x, sizes, view}, "default");
  plan.inputs = {x};
  plan.outputs = {out, view};
  Loaded loaded(file_of(plan));
  CHECK(loaded.load().ok());
  for (float value : {1.0f, 2.0f}) {
    const std::vector<float> data(2, value);  // freed after the run
    CHECK(loaded.method.set_input(0, HostTensor(DType::Float32, {2}, data.data())).ok());
    CHECK(loaded.method.execute().ok());
    CHECK(first(loaded.method.output(0)) == 0 && first(loaded.method.output(1)) == value);
  }
  for (const bool moved : {true, false}) {
    Plan bad = plan;
    if (moved) bad.move(out, view);
    if (!moved) bad.inputs.push_back(view);
    Loaded refused(file_of(bad));
    CHECK(refused.load().code() == Code::InvalidProgram);
    CHECK(says(refused.message, "the target of a view is an input or is moved to"));
  }
}

// Memory belongs to the arenas or the caller, so a free instruction frees none.
void test_free() {
  Plan plan = add_plan();
  plan.free(0);
  plan.free(1);
  Loaded loaded(file_of(plan));
  CHECK(loaded.load().ok());
  float x[] = {1, 1, 1, 1, 1, 1};
  CHECK(loaded.method.set_input(0, HostTensor(DType::Float32, {2, 3}, x)).ok());
  for (int run = 0; run < 2; ++run) {
    CHECK(loaded.method.execute().ok());
    CHECK(first(loaded.method.output(0)) == 3);
  }
}

}  // namespace

int main() {
  test_runs();
  test_specialised_kernel();
  test_jump_and_move();
  test_loop();
  test_endless_loop_ends();
  test_cancelled_runs_end();
  test_failure_says_where();
  test_steps();
  test_failed_step_stays();
  test_scratch_is_reset();
  test_mutable_state();
  test_constants();
  test_bare_tensors();
  test_views_start_anew();
  test_free();
  return check_result();
}
