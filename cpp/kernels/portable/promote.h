// Type promotion with torch.result_type's rules, and the type a kernel computes in.
#pragma once

#include "rushlight/core/dtype.h"
#include "rushlight/core/evalue.h"
#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/loops/elementwise/convert.h"

namespace rushlight::kernels {

// Bool, the integers up to 64 bits, and the floating types: what elementwise kernels take.
bool is_real(DType dtype);
// Both are real types: the smallest type that holds both, as torch.promote_types has it.
DType promote(DType a, DType b);
// True if torch lets a result of type `from` go into an out tensor of type `to`
// (no floating to integral, no number to bool).
bool can_cast(DType from, DType to);

// The type of Python scalar `value` among tensors: int64, float32 (torch's default) or bool.
DType scalar_dtype(const EValue& value);

// Collects operands; a 0-d tensor and a scalar raise the type only across kinds
// (bool < integral < floating).
class ResultType {
 public:
  ResultType& add(const Tensor& tensor);
  ResultType& add_scalar(const EValue& value);
  DType get() const;

 private:
  // -1 until the first operand of that class.
  int dims_ = -1;
  int zero_dim_ = -1;
  int scalars_ = -1;
};

// The type that values of `dtype` are computed in: float16 and bfloat16 in float32, integers of at
// most 32 bits (and bool) in int32.
DType compute_dtype(DType dtype);
// The row of a loop table for a type that compute_dtype returns, or for Bool.
ComputeType compute_index(DType compute);
// `dtype` if it is floating, else float32: the result of operators such as exp and mean.
DType to_floating(DType dtype);

// NotSupported unless is_real(tensor.dtype).
Status check_real(KernelContext& ctx, const char* name, const Tensor& tensor);
// NotSupported unless tensor.dtype is a floating one.
Status check_floating(KernelContext& ctx, const char* name, const Tensor& tensor);
// InvalidArgument unless a result of type `result` may go into `out`.
Status check_castable(KernelContext& ctx, DType result, const Tensor& out);

}  // namespace rushlight::kernels
