// Fills a tensor, for the kernels that create one and for special cases of others.
#pragma once

#include "rushlight/core/evalue.h"
#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"

namespace rushlight::kernels {

// Sets every element of `out` to the scalar, converted to its type. Returns NotSupported if a
// number cannot be converted to that type.
Status fill(KernelContext& ctx, Tensor& out, const EValue& value);

// The same with the first element of `value`, which must have at least one.
Status fill_from(KernelContext& ctx, Tensor& out, const Tensor& value);

}  // namespace rushlight::kernels
