// Comparisons, logical and bitwise operators, selection by a condition, and bounds given as
// tensors.
#include <limits>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/elementwise/elementwise.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/loops/elementwise/binary.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {
namespace {

// Checks the operands (tensors or scalars) and finds their common type.
Status common_type(KernelContext& ctx, const EValue* const* values, size_t n, DType* common) {
  ResultType type;
  for (size_t k = 0; k < n; ++k) {
    if (values[k]->is_none()) continue;
    if (!values[k]->is_tensor()) {
      type.add_scalar(*values[k]);
      continue;
    }
    RL_TRY(check_real(ctx, k == 0 ? "self" : "other", values[k]->tensor()));
    type.add(values[k]->tensor());
  }
  *common = type.get();
  return {};
}

// Bool operands are compared and combined without conversion.
DType compute_or_bool(DType common) {
  return common == DType::Bool ? DType::Bool : compute_dtype(common);
}

Status run_pair(KernelContext& ctx, EValue* const* args, Binary op, DType common, DType compute,
                DType result, LoopArgs& loop_args) {
  const ElementwiseFn fn = op.loop(compute_index(compute));
  if (fn == nullptr) return no_loop(ctx, common);
  const Operand operands[] = {operand(*args[0], compute, common),
                              operand(*args[1], compute, common)};
  return run_elementwise(ctx, args[2]->tensor(), result, operands, 2, fn, loop_args);
}

Status compare(KernelContext& ctx, EValue* const* args, Binary op) {
  DType common;
  RL_TRY(common_type(ctx, args, 2, &common));
  LoopArgs loop_args;
  return run_pair(ctx, args, op, common, compute_or_bool(common), DType::Bool, loop_args);
}

Status logical(KernelContext& ctx, EValue* const* args, Binary op) {
  DType common;
  RL_TRY(common_type(ctx, args, 2, &common));
  LoopArgs loop_args;
  return run_pair(ctx, args, op, DType::Bool, DType::Bool, DType::Bool, loop_args);
}

Status bitwise(KernelContext& ctx, EValue* const* args, Binary op) {
  DType common;
  RL_TRY(common_type(ctx, args, 2, &common));
  RL_TRY(check_castable(ctx, common, args[2]->tensor()));
  const DType compute = compute_or_bool(common);
  LoopArgs loop_args;
  return run_pair(ctx, args, op, common, compute, compute, loop_args);
}

Status shift(KernelContext& ctx, EValue* const* args, Binary op) {
  DType common;
  RL_TRY(common_type(ctx, args, 2, &common));
  RL_TRY(check_castable(ctx, common, args[2]->tensor()));
  const DType compute = compute_dtype(common);
  const int64_t width = static_cast<int64_t>(8 * element_size(common));
  LoopArgs loop_args;
  // A shift to the right keeps the sign bit, so its maximum is one less for a signed type.
  const bool keeps_sign = op.op == BinaryOp::ShiftRight && common != DType::UInt8;
  loop_args.i[0] = keeps_sign ? width - 1 : width;
  return run_pair(ctx, args, op, common, compute, compute, loop_args);
}

Status check_condition(KernelContext& ctx, const char* name, const Tensor& condition) {
  if (condition.dtype == DType::Bool || condition.dtype == DType::UInt8) return {};
  return ctx.fail(Code::InvalidArgument, "%s is %s, but must be bool", name,
                  dtype_name(condition.dtype));
}

// out = condition ? a : b. Elements keep the type `common`; there is no computing type.
Status select(KernelContext& ctx, const Tensor& condition, const EValue& a, const EValue& b,
              DType common, Tensor& out) {
  RL_TRY(check_castable(ctx, common, out));
  const ElementwiseFn* where = where_loops().fn;
  const size_t size = element_size(common);
  const ElementwiseFn fn = size == 1   ? where[0]
                           : size == 2 ? where[1]
                           : size == 4 ? where[2]
                                       : where[3];
  const Operand operands[] = {operand(condition, DType::Bool), operand(a, common, common),
                              operand(b, common, common)};
  LoopArgs loop_args;
  return run_elementwise(ctx, out, common, operands, 3, fn, loop_args);
}

}  // namespace

#define RL_KERNEL(name, family, op) \
  Status name(KernelContext& ctx, EValue* const* args) { return family(ctx, args, RL_BINARY(op)); }
RL_KERNEL(bitwise_and_out, bitwise, And)
RL_KERNEL(bitwise_left_shift_out, shift, ShiftLeft)
RL_KERNEL(bitwise_or_out, bitwise, Or)
RL_KERNEL(bitwise_right_shift_out, shift, ShiftRight)
RL_KERNEL(bitwise_xor_out, bitwise, Xor)
RL_KERNEL(eq_out, compare, Eq)
RL_KERNEL(ge_out, compare, Ge)
RL_KERNEL(gt_out, compare, Gt)
RL_KERNEL(le_out, compare, Le)
RL_KERNEL(logical_and_out, logical, And)
RL_KERNEL(logical_or_out, logical, Or)
RL_KERNEL(logical_xor_out, logical, Xor)
RL_KERNEL(lt_out, compare, Lt)
RL_KERNEL(ne_out, compare, Ne)
#undef RL_KERNEL

// where(condition, self, other, out)
Status where_self_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& condition = args[0]->tensor();
  RL_TRY(check_condition(ctx, "condition", condition));
  DType common;
  RL_TRY(common_type(ctx, args + 1, 2, &common));
  return select(ctx, condition, *args[1], *args[2], common, args[3]->tensor());
}

// masked_fill(self, mask, value, out)
Status masked_fill_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& mask = args[1]->tensor();
  RL_TRY(check_condition(ctx, "mask", mask));
  RL_TRY(check_real(ctx, "self", args[0]->tensor()));
  const DType dtype = args[0]->tensor().dtype;
  if (!can_cast(scalar_dtype(*args[2]), dtype)) {
    return ctx.fail(Code::InvalidArgument, "value is %s, which does not fit self of type %s",
                    tag_name(args[2]->tag), dtype_name(dtype));
  }
  return select(ctx, mask, *args[2], *args[0], dtype, args[3]->tensor());
}

// clamp(self, min, max, out) with optional tensors
Status clamp_tensor_out(KernelContext& ctx, EValue* const* args) {
  DType common;
  RL_TRY(common_type(ctx, args, 3, &common));
  RL_TRY(check_castable(ctx, common, args[3]->tensor()));
  const DType compute = compute_dtype(common);
  // For None, a bound that no number of the type exceeds.
  EValue limits[2];
  if (is_floating(common)) {
    limits[0].set_double(-std::numeric_limits<double>::infinity());
    limits[1].set_double(std::numeric_limits<double>::infinity());
  } else {
    limits[0].set_int(compute == DType::Int64 ? INT64_MIN : INT32_MIN);
    limits[1].set_int(compute == DType::Int64 ? INT64_MAX : INT32_MAX);
  }
  const EValue& low = args[1]->is_none() ? limits[0] : *args[1];
  const EValue& high = args[2]->is_none() ? limits[1] : *args[2];
  const Operand operands[] = {operand(*args[0], compute, common), operand(low, compute, compute),
                              operand(high, compute, compute)};
  LoopArgs loop_args;
  const ElementwiseFn fn = clamp_loops().fn[compute_index(compute)];
  if (fn == nullptr) return no_loop(ctx, common);
  return run_elementwise(ctx, args[3]->tensor(), compute, operands, 3, fn, loop_args);
}

}  // namespace rushlight::kernels
