// Type promotion by torch.result_type's rules, and the type that a kernel computes in.
#pragma once

#include "rushlight/core/dtype.h"
#include "rushlight/core/evalue.h"
#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/loops/elementwise/convert.h"

namespace rushlight::kernels {

// True for bool, the integers up to 64 bits and the floating types, which elementwise kernels take.
bool is_real(DType dtype);
// The smallest type that holds both, as in torch.promote_types. Both must be real types.
DType promote(DType a, DType b);
// True if torch can store a result of type `from` in an out tensor of type `to`: not floating in
// integral, and no number in bool.
bool can_cast(DType from, DType to);

// The type of the Python scalar `value` in promotion: int64, float32 (torch's default) or bool.
DType scalar_dtype(const EValue& value);

// Collects the types of operands. 0-d tensors and scalars raise the result only to a higher kind
// (bool < integral < floating).
class ResultType {
 public:
  ResultType& add(const Tensor& tensor);
  ResultType& add_scalar(const EValue& value);
  DType get() const;

 private:
  // -1 until the first operand of this class.
  int dims_ = -1;
  int zero_dim_ = -1;
  int scalars_ = -1;
};

// The type in which values of `dtype` are computed: float32 for float16 and bfloat16, int32 for
// bool and integers of at most 32 bits.
DType compute_dtype(DType dtype);
// The row in a loop table for Bool or for a type that compute_dtype returns.
ComputeType compute_index(DType compute);
// `dtype` if it is floating, else float32: the result type of operators such as exp and mean.
DType to_floating(DType dtype);

// Returns NotSupported unless is_real(tensor.dtype).
Status check_real(KernelContext& ctx, const char* name, const Tensor& tensor);
// Returns NotSupported unless tensor.dtype is floating.
Status check_floating(KernelContext& ctx, const char* name, const Tensor& tensor);
// Returns InvalidArgument unless a result of type `result` can be stored in `out`.
Status check_castable(KernelContext& ctx, DType result, const Tensor& out);

}  // namespace rushlight::kernels
