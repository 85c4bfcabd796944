// What a loaded method does: instructions, inputs and outputs, steps, failures.
#include <cmath>
#include <cstring>

#include "check.h"
#include "rushlight/module/module.h"
#include "test_kernels.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

bool says(const Message& message, const char* part) {
  const bool found = std::strstr(message.text(), part) != nullptr;
  if (!found) std::fprintf(stderr, "message: %s\n", message.text());
  return found;
}

float first(const EValue& value) { return value.tensor().as<float>()[0]; }

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
  CHECK(loaded.method.execute().ok());  // inputs stay
  CHECK(loaded.method.message().empty());
}

void test_refused_inputs_change_nothing() {
  Loaded loaded(file_of(add_plan()));
  CHECK(loaded.load().ok());
  float x[] = {1, 1, 1, 1, 1, 1};
  double wide[6] = {};
  CHECK(loaded.method.set_input(0, HostTensor(DType::Float32, {2, 3}, x)).ok());
  Method& m = loaded.method;
  CHECK(m.set_input(0, HostTensor(DType::Float64, {2, 3}, wide)).code() == Code::InvalidArgument);
  CHECK(says(m.message(), "forward: input 0: got float64, the method takes float32"));
  CHECK(m.set_input(0, HostTensor(DType::Float32, {3, 2}, wide)).code() == Code::NotSupported);
  CHECK(says(m.message(), "got sizes (3, 2), the method takes (2, 3)"));
  CHECK(m.set_input(0, HostTensor(DType::Float32, {6}, wide)).code() == Code::NotSupported);
  CHECK(says(m.message(), "got sizes (6,), the method takes (2, 3)"));
  CHECK(m.set_input(0, HostTensor(DType::Float32, {2, 3}, nullptr)).code() ==
        Code::InvalidArgument);
  CHECK(m.set_input(1, HostTensor(DType::Float32, {2, 3}, x)).code() == Code::InvalidArgument);
  CHECK(says(m.message(), "input 1: the method has 1 inputs"));
  CHECK(m.set_input_int(0, 3).code() == Code::InvalidArgument);
  CHECK(says(m.message(), "got an Int, the method takes a Tensor"));
  CHECK(m.execute().ok());
  CHECK(first(m.output(0)) == 3);
}

// A bounded input, planned and not: every size up to the bound.
void test_bounded_inputs() {
  for (const int memory_id : {1, -1}) {
    Plan plan;
    TensorOptions in;
    in.dynamism = 1;
    in.memory_id = memory_id;
    const int32_t x = plan.tensor({4, 3}, in);
    TensorOptions out;
    out.dynamism = 1;
    out.offset = 64;
    const int32_t y = plan.tensor({4, 3}, out);
    const int32_t alpha = plan.real(0.5);
    plan.call("aten::add", {x, x, alpha, y, y});
    plan.inputs = {x};
    plan.outputs = {y};
    Loaded loaded(file_of(plan));
    CHECK(loaded.load().ok());
    float data[12];
    for (float& v : data) v = 2;
    for (int32_t rows : {1, 4, 0, 2}) {
      CHECK(loaded.method.set_input(0, HostTensor(DType::Float32, {rows, 3}, data)).ok());
      CHECK(loaded.method.execute().ok());
      const Tensor& y_now = loaded.method.output(0).tensor();
      CHECK(y_now.size(0) == rows && y_now.numel == 3 * rows);
      for (int64_t i = 0; i < y_now.numel; ++i) CHECK(y_now.as<float>()[i] == 3);
    }
    const Status status = loaded.method.set_input(0, HostTensor(DType::Float32, {5, 3}, data));
    CHECK(status.code() == Code::NotSupported);
    CHECK(says(loaded.method.message(), "got sizes (5, 3), allowed are at most (4, 3)"));
    CHECK(loaded.method.execute().ok());
    CHECK(loaded.method.output(0).tensor().size(0) == 2);
  }
}

// The dim order of what is given is respected; what is read in place must have the program's.
void test_dim_orders() {
  const uint8_t kTransposed[] = {1, 0};
  float columns[] = {1, 4, 2, 5, 3, 6};  // (2, 3) with the second dimension outermost
  const int32_t sizes[] = {2, 3};
  const HostTensor given(DType::Float32, {sizes, 2}, columns, kTransposed);
  Loaded planned(file_of(add_plan()));
  CHECK(planned.load().ok());
  CHECK(planned.method.set_input(0, given).ok());
  CHECK(planned.method.execute().ok());
  for (int i = 0; i < 6; ++i) {
    CHECK(planned.method.output(0).tensor().as<float>()[i] == 3.0f * static_cast<float>(i + 1));
  }
  Plan plan = add_plan();
  TensorOptions bare;
  bare.memory_id = -1;
  plan.values[0] = Table().choice(0, 5, tensor_table({2, 3}, bare));
  Loaded unplanned(file_of(plan));
  CHECK(unplanned.load().ok());
  CHECK(unplanned.method.set_input(0, given).code() == Code::InvalidArgument);
  CHECK(says(unplanned.method.message(), "must have the dim order of the program"));
}

void test_scalar_inputs() {
  Plan plan;
  plan.inputs = {plan.integer(3), plan.real(0.5), plan.boolean(true), plan.none(),
                 plan.text("abc")};
  plan.outputs = plan.inputs;
  Loaded loaded(file_of(plan));
  CHECK(loaded.load().ok());
  Method& m = loaded.method;
  CHECK(m.set_input_int(0, 4).code() == Code::InvalidArgument);
  CHECK(says(m.message(), "input 0: got 4, allowed is 3"));
  CHECK(m.set_input_double(1, 0.7).code() == Code::InvalidArgument);
  CHECK(m.set_input_double(1, std::nan("")).code() == Code::InvalidArgument);
  CHECK(m.set_input_double(1, HUGE_VAL).code() == Code::InvalidArgument);
  CHECK(m.set_input_bool(2, false).code() == Code::InvalidArgument);
  CHECK(m.set_input_string(4, "abd").code() == Code::InvalidArgument);
  CHECK(says(m.message(), "got 'abd', allowed is 'abc'"));
  CHECK(m.set_input_int(3, 0).code() == Code::InvalidArgument);
  CHECK(m.execute().code() == Code::InvalidState);
  CHECK(m.set_input_int(0, 3).ok() && m.set_input_double(1, 0.500001).ok());
  CHECK(m.set_input_bool(2, true).ok() && m.set_input_none(3).ok());
  CHECK(m.set_input_string(4, "abc").ok());
  CHECK(m.execute().ok());
  CHECK(m.output(0).to_int() == 3 && m.output(4).string() == "abc");

  MethodOptions options = {};
  options.any_scalar_inputs = true;
  Loaded free(file_of(plan));
  CHECK(free.load("forward", options).ok());
  CHECK(free.method.set_input_int(0, 40).ok() && free.method.set_input_bool(2, false).ok());
  CHECK(free.method.set_input_double(1, 7).ok());
  CHECK(free.method.input(0).to_int() == 40 && free.method.input(1).to_double() == 7);
}

// if flag: out = x else: out = y, as exporters write it.
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

// i = 0; do { i += 1 } while (i != 5), with i set back by a move, so that it runs again.
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
  CHECK(loaded.method.execute().code() == Code::InvalidArgument);  // from the start again
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

// A state that starts with 1, 2 from the file; a second that starts at zero.
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
  CHECK(first(loaded.method.output(1)) == 0);  // the arena was full of other bytes
  CHECK(loaded.method.execute().ok() && loaded.method.execute().ok());
  CHECK(first(loaded.method.output(0)) == 4);
}

// Constants lie in the image, aligned or not; nothing may write one.
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

void test_unplanned_outputs() {
  Plan plan = add_plan();
  TensorOptions bare;
  bare.memory_id = -1;
  plan.values[1] = Table().choice(0, 5, tensor_table({2, 3}, bare));
  Loaded loaded(file_of(plan));
  CHECK(loaded.load().ok());
  Method& m = loaded.method;
  float x[] = {1, 1, 1, 1, 1, 1};
  float y[6] = {};
  CHECK(m.set_input(0, HostTensor(DType::Float32, {2, 3}, x)).ok());
  CHECK(m.output_needs_data(0));
  CHECK(m.execute().code() == Code::InvalidState);
  CHECK(says(m.message(), "output 0 is not planned"));
  CHECK(m.set_output_data(0, y, 20).code() == Code::InvalidArgument);
  CHECK(says(m.message(), "output 0: got 20 bytes, it takes 24"));
  CHECK(m.set_output_data(1, y, 24).code() == Code::InvalidArgument);
  CHECK(m.set_output_data(0, y, 24).ok());
  CHECK(m.execute().ok());
  CHECK(y[5] == 3);
  Loaded planned(file_of(add_plan()));
  CHECK(planned.load().ok());
  CHECK(planned.method.set_output_data(0, y, 24).code() == Code::InvalidState);
}

// A bounded output with less memory than its bound: the result decides.
void test_small_output() {
  Plan plan = add_plan();
  TensorOptions bare;
  bare.memory_id = -1;
  bare.dynamism = 1;
  plan.values[0] = Table().choice(0, 5, tensor_table({2, 3}, bare));
  plan.values[1] = Table().choice(0, 5, tensor_table({2, 3}, bare));
  Loaded loaded(file_of(plan));
  CHECK(loaded.load().ok());
  Method& m = loaded.method;
  float x[] = {1, 1, 1, 1, 1, 1};
  float y[3] = {};
  CHECK(m.set_output_data(0, y, sizeof(y)).ok());
  CHECK(m.set_input(0, HostTensor(DType::Float32, {1, 3}, x)).ok());
  CHECK(m.execute().ok());
  CHECK(y[2] == 3);
  CHECK(m.set_input(0, HostTensor(DType::Float32, {2, 3}, x)).ok());
  CHECK(m.execute().code() == Code::NotSupported);
  CHECK(says(m.message(), "room for 3 elements"));
}

// Values without memory are given some by a view; without one a kernel never sees them.
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

// Memory is the arenas' or the caller's: a free takes none away.
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

// A move may make an input denote another tensor; the next input still lands in its own.
void test_moved_input() {
  Plan plan = add_plan();
  plan.move(1, 0);
  Loaded loaded(file_of(plan));
  CHECK(loaded.load().ok());
  float x[] = {1, 1, 1, 1, 1, 1};
  for (int run = 0; run < 2; ++run) {
    CHECK(loaded.method.set_input(0, HostTensor(DType::Float32, {2, 3}, x)).ok());
    CHECK(loaded.method.execute().ok());
    CHECK(first(loaded.method.output(0)) == 3);
  }
}

}  // namespace

int main() {
  test_runs();
  test_refused_inputs_change_nothing();
  test_bounded_inputs();
  test_dim_orders();
  test_scalar_inputs();
  test_jump_and_move();
  test_loop();
  test_endless_loop_ends();
  test_failure_says_where();
  test_steps();
  test_failed_step_stays();
  test_scratch_is_reset();
  test_mutable_state();
  test_constants();
  test_unplanned_outputs();
  test_small_output();
  test_bare_tensors();
  test_free();
  test_moved_input();
  return check_result();
}
