// Arithmetic on complex64 tensors, for operators that work on real tensors as well.
#pragma once

#include "rushlight/core/evalue.h"
#include "rushlight/kernel/kernel.h"

namespace rushlight::kernels {

enum class ComplexOp { Add, Multiply, Divide };

// out = a op b; for Add: a + factor * b. Operands are complex64 or real tensors, or real scalars.
// Returns NotSupported for any other type.
Status complex_binary(KernelContext& ctx, ComplexOp op, const EValue& a, const EValue& b,
                      double factor, Tensor& out);

// out = factor * in; both are complex64.
Status complex_scale(KernelContext& ctx, const Tensor& in, float factor, Tensor& out);

// out = |in|; `in` is complex64, `out` is float32.
Status complex_abs(KernelContext& ctx, const Tensor& in, Tensor& out);

}  // namespace rushlight::kernels
