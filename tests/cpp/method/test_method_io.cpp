// Inputs and outputs of a method: what is accepted, what is refused, and that a refusal changes
// nothing.
#include <cmath>
#include <cstring>

#include "check.h"
#include "rushlight/module/module.h"
#include "test_kernels.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

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

// A bounded input, planned or not: every size up to the bound.
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

// Any dim order of a tensor that is copied is accepted; a tensor that is read in place must have
// the program's.
void test_dim_orders() {
  const uint8_t kTransposed[] = {1, 0};
  float columns[] = {1, 4, 2, 5, 3, 6};  // (2, 3) with the second dimension outermost
  const int32_t sizes[] = {2, 3};
  const HostTensor tensor(DType::Float32, {sizes, 2}, columns, kTransposed);
  Loaded planned(file_of(add_plan()));
  CHECK(planned.load().ok());
  CHECK(planned.method.set_input(0, tensor).ok());
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
  CHECK(unplanned.method.set_input(0, tensor).code() == Code::InvalidArgument);
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

// Two unplanned outputs: memory that overlaps is refused when the method runs.
void test_output_data_that_overlaps() {
  Plan plan = add_plan();
  TensorOptions bare;
  bare.memory_id = -1;
  plan.values[1] = Table().choice(0, 5, tensor_table({2, 3}, bare));
  const int32_t z = plan.tensor({2, 3}, bare);
  plan.call("aten::add", {plan.inputs[0], plan.inputs[0], 2, z, z});
  plan.outputs.push_back(z);
  Loaded loaded(file_of(plan));
  CHECK(loaded.load().ok());
  Method& m = loaded.method;
  float x[] = {1, 1, 1, 1, 1, 1};
  float memory[12] = {};
  CHECK(m.set_input(0, HostTensor(DType::Float32, {2, 3}, x)).ok());
  CHECK(m.set_output_data(0, memory, 24).ok());
  for (float* second : {memory, memory + 5}) {
    CHECK(m.set_output_data(1, second, 24).ok());
    CHECK(m.execute().code() == Code::InvalidState);
    CHECK(says(m.message(), "the memory given for output 1 overlaps that for output 0"));
  }
  CHECK(memory[0] == 0);
  CHECK(m.set_output_data(1, memory + 6, 24).ok());
  CHECK(m.execute().ok());
  CHECK(memory[0] == 3 && memory[11] == 3);
  // They may exchange their memory, one after the other.
  CHECK(m.set_output_data(0, memory + 6, 24).ok());
  CHECK(m.set_output_data(1, memory, 24).ok());
  CHECK(m.execute().ok());
}

// A bounded output with less memory than its bound: the size of the result decides.
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

// A move may make an input refer to another tensor. The next input is still copied into its own.
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
  test_refused_inputs_change_nothing();
  test_bounded_inputs();
  test_dim_orders();
  test_scalar_inputs();
  test_unplanned_outputs();
  test_output_data_that_overlaps();
  test_small_output();
  test_moved_input();
  return check_result();
}
