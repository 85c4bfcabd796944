// The driver of all elementwise kernels: broadcasting, type conversion and chunking around an inner
// loop that knows only contiguous elements of one type.
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
  DType as = DType::Float32;  // the type in which the loop takes it
  // The operator's type: scalars and 0-d tensors, which may be of a wider type, pass through it.
  DType via = DType::Float32;
};

inline Operand operand(const Tensor& tensor, DType as, DType via) {
  return {&tensor, nullptr, as, via};
}
inline Operand operand(const EValue& value, DType as, DType via) {
  return value.is_tensor() ? operand(*value.t, as, via) : Operand{nullptr, &value, as, via};
}
inline Operand operand(const Tensor& tensor, DType as) { return operand(tensor, as, as); }

// Resizes `out` to the common shape of the tensors among `in` and runs `fn`, whose results are of
// type `result`, over all of it; they are converted to out's type. Fails if the shapes cannot be
// broadcast, a type cannot be converted, or the loop divided an integer by zero.
Status run_elementwise(KernelContext& ctx, Tensor& out, DType result, const Operand* in, size_t n,
                       ElementwiseFn fn, const LoopArgs& args);

}  // namespace rushlight::kernels
