// For tests of delegates: creates a program of them and runs it.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "test_kernels.h"

namespace rushlight {
namespace test {

inline std::vector<uint8_t> scale_payload(float factor) {
  std::vector<uint8_t> payload = {'S', 'C', 'L', '1', 0, 0, 0, 0};
  std::memcpy(&payload[4], &factor, 4);
  return payload;
}

// y = delegate(x) over float32 [2]. A tensor that must not be changed is after y.
inline std::vector<uint8_t> one_delegate_file(const std::string& id,
                                              const std::vector<uint8_t>& payload,
                                              bool dynamic = false) {
  Plan plan;
  TensorOptions at;
  at.dynamism = dynamic ? 1 : 0;
  const int32_t x = plan.tensor({2}, at);
  at.offset = 16;
  const int32_t y = plan.tensor({2}, at);
  at.offset = 24;
  plan.tensor({2}, at);
  plan.delegate(id, 0);
  plan.delegate_call(0, {x, y});
  plan.inputs = {x};
  plan.outputs = {y};
  ProgramFile file;
  file.plans = {plan};
  file.segments = {payload};
  return file.bytes();
}

// Sets float32 input 0, of one dimension, and runs.
inline Status run_on(Method& method, std::initializer_list<float> values) {
  std::vector<float> x = values;
  int32_t sizes[] = {static_cast<int32_t>(x.size())};
  int32_t strides[] = {1};
  const uint8_t dim_order[] = {0};
  Tensor tensor;
  tensor.data = x.data();
  tensor.sizes = sizes;
  tensor.strides = strides;
  tensor.dim_order = dim_order;
  tensor.numel = sizes[0];
  tensor.rank = 1;
  RL_TRY(method.set_input(0, tensor));
  return method.execute();
}

}  // namespace test
}  // namespace rushlight
