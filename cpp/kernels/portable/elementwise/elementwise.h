// The driver of all elementwise kernels. It broadcasts, converts types and splits into chunks; the
// inner loops see only contiguous elements of one type.
#pragma once

#include "rushlight/core/evalue.h"
#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/loops/elementwise/elementwise.h"

namespace rushlight::kernels {

constexpr size_t kMaxOperands = 3;

// One input of a loop: a tensor, or a scalar that is repeated.
struct Operand {
  const Tensor* tensor = nullptr;
  const EValue* scalar = nullptr;
  DType as = DType::Float32;  // the type in which the loop reads it
  // Scalars and 0-d tensors may have a wider type than the operator computes with. They are
  // converted to this type first.
  DType via = DType::Float32;
};

inline Operand operand(const Tensor& tensor, DType as, DType via) {
  return {&tensor, nullptr, as, via};
}
inline Operand operand(const EValue& value, DType as, DType via) {
  return value.is_tensor() ? operand(*value.t, as, via) : Operand{nullptr, &value, as, via};
}
inline Operand operand(const Tensor& tensor, DType as) { return operand(tensor, as, as); }

// What a kernel returns that has no loop for operands of this type.
Status no_loop(KernelContext& ctx, DType dtype);

// Resizes `out` to the common shape of the tensors among `in` and runs `fn` on all of it. The
// results of `fn` have the type `result` and are converted to the type of `out`. Fails if the
// shapes cannot be broadcast, if a type cannot be converted, or if the loop divided an integer by
// zero.
Status run_elementwise(KernelContext& ctx, Tensor& out, DType result, const Operand* in, size_t n,
                       ElementwiseFn fn, const LoopArgs& args);

}  // namespace rushlight::kernels
