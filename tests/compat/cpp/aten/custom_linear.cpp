#include "custom_linear.h"

Tensor& custom_linear_out(const Tensor& weight, const Tensor& input, optional<Tensor> bias,
                          Tensor& out) {
  const auto rows = input.size(0), inner = input.size(1), columns = weight.size(1);
  for (ssize_t i = 0; i < rows; ++i) {
    for (ssize_t k = 0; k < columns; ++k) {
      float sum = bias.has_value() ? bias->const_data_ptr<float>()[k] : 0.0f;
      for (ssize_t j = 0; j < inner; ++j) {
        sum += input.const_data_ptr<float>()[i * inner + j] *
               weight.const_data_ptr<float>()[j * columns + k];
      }
      out.mutable_data_ptr<float>()[i * columns + k] = sum;
    }
  }
  return out;
}

Tensor& weighted_out(ArrayRef<Tensor> tensors, ArrayRef<double> factors, const Scalar& scale,
                     optional<int64_t> count, Tensor& out) {
  const auto elements = static_cast<executorch::aten::SizesType>(count.value_or(out.numel()));
  ET_CHECK(executorch::runtime::resize_tensor(out, {&elements, 1}) ==
           executorch::runtime::Error::Ok);
  for (ssize_t i = 0; i < elements; ++i) {
    double sum = 0;
    for (size_t k = 0; k < tensors.size(); ++k) {
      sum += factors[k] * static_cast<double>(tensors[k].const_data_ptr<float>()[i]);
    }
    out.mutable_data_ptr<float>()[i] = static_cast<float>(sum * scale.to<double>());
  }
  return out;
}

void add_to(Tensor& values, double number, bool negate) {
  for (ssize_t i = 0; i < values.numel(); ++i) {
    values.mutable_data_ptr<float>()[i] += static_cast<float>(negate ? -number : number);
  }
}

int64_t count_of(const Tensor& values) { return values.numel(); }

EXECUTORCH_LIBRARY(compat_aten, "custom_linear.out", custom_linear_out);
