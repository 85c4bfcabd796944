// Filling a tensor, for the kernels that create one and for the corner cases of others.
#pragma once

#include "rushlight/core/evalue.h"
#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"

namespace rushlight::kernels {

// Sets every element of `out` to the scalar, converted to its type. NotSupported if out's type is
// none that a number can be converted to.
Status fill(KernelContext& ctx, Tensor& out, const EValue& value);

// The same from the first element of `value`, which has at least one.
Status fill_from(KernelContext& ctx, Tensor& out, const Tensor& value);

}  // namespace rushlight::kernels
