// What the kernels of special functions share: converting operands to their common type.
#pragma once

#include "rushlight/core/evalue.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/loops/elementwise/elementwise.h"

namespace rushlight::kernels {

// The type of n tensors and scalars together; NotSupported if one is of a type without numbers.
extern const char* const kSelfOther[];
Status common_type(KernelContext& ctx, EValue* const* inputs, size_t n, DType* common,
                   const char* const* names = kSelfOther);

// Runs `fn` on tensors and scalars of the type `common`, and computes in the type `as`.
Status run_in_common_type(KernelContext& ctx, EValue* const* inputs, size_t n, const EValue& out,
                          DType common, DType as, ElementwiseFn fn, LoopArgs& args);

}  // namespace rushlight::kernels
