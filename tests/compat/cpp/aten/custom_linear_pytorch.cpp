#include <executorch/extension/aten_util/make_aten_functor_from_et_functor.h>
#include <torch/library.h>

#include "custom_linear.h"

namespace {

at::Tensor custom_linear(const at::Tensor& weight, const at::Tensor& input,
                         std::optional<at::Tensor> bias) {
  at::Tensor out = at::empty({input.size(0), weight.size(1)});
  WRAP_TO_ATEN(custom_linear_out, 3)(weight, input, bias, out);
  return out;
}

// The types of both libraries over the same memory.
bool shares_memory(const at::Tensor& tensor) {
  at::Tensor values = tensor;
  const auto view = executorch::extension::alias_tensor_ptr_to_attensor(values);
  const at::Tensor again = executorch::extension::alias_attensor_to_etensor(*view);
  executorch::aten::Tensor other = *view;
  executorch::extension::alias_etensor_to_attensor(values, other);
  return again.data_ptr() == values.data_ptr() && at::equal(again, values) &&
         other.mutable_data_ptr() == values.data_ptr();
}

}  // namespace

TORCH_LIBRARY(compat_aten, m) {
  m.def("custom_linear(Tensor weight, Tensor input, Tensor? bias) -> Tensor", custom_linear);
  m.def(
      "custom_linear.out(Tensor weight, Tensor input, Tensor? bias, *, Tensor(a!) out) -> "
      "Tensor(a!)",
      WRAP_TO_ATEN(custom_linear_out, 3));
  m.def(
      "weighted.out(Tensor[] tensors, float[] factors, Scalar scale, int? count, *, Tensor(a!) "
      "out) -> Tensor(a!)",
      WRAP_TO_ATEN(weighted_out, 4));
  m.def("add_to(Tensor(a!) values, float number, bool negate) -> ()", WRAP_TO_ATEN(add_to));
  m.def("count_of(Tensor values) -> int", WRAP_TO_ATEN(count_of));
  m.def("shares_memory(Tensor values) -> bool", shares_memory);
}
