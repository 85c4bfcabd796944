// Arithmetic on complex64 tensors, for the operators that also work on real ones.
#pragma once

#include "rushlight/core/evalue.h"
#include "rushlight/kernel/kernel.h"

namespace rushlight::kernels {

enum class ComplexOp { Add, Multiply, Divide };

// out = a op b; for Add, a + factor * b. Operands are tensors, complex64 or real, and real scalars.
// NotSupported if one is of another type.
Status complex_binary(KernelContext& ctx, ComplexOp op, const EValue& a, const EValue& b,
                      double factor, Tensor& out);

// out = factor * in, both complex64.
Status complex_scale(KernelContext& ctx, const Tensor& in, float factor, Tensor& out);

// out = |in|, of complex64 in float32.
Status complex_abs(KernelContext& ctx, const Tensor& in, Tensor& out);

}  // namespace rushlight::kernels
