#pragma once

#include <executorch/extension/kernel_util/make_boxed_from_unboxed_functor.h>
#include <executorch/runtime/kernel/kernel_includes.h>

using executorch::aten::ArrayRef;
using executorch::aten::optional;
using executorch::aten::Scalar;
using executorch::aten::Tensor;

// out = input @ weight + bias.
Tensor& custom_linear_out(const Tensor& weight, const Tensor& input, optional<Tensor> bias,
                          Tensor& out);
// The sum of some tensors, each times its factor and all times the scale; of the first so many
// elements.
Tensor& weighted_out(ArrayRef<Tensor> tensors, ArrayRef<double> factors, const Scalar& scale,
                     optional<int64_t> count, Tensor& out);
// Adds a number to a tensor in place.
void add_to(Tensor& values, double number, bool negate);
int64_t count_of(const Tensor& values);
