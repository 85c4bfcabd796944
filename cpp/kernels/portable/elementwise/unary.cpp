// Elementwise operators with one tensor operand.
#include <cmath>
#include <limits>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/elementwise/complex.h"
#include "rushlight/kernels/portable/elementwise/elementwise.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/loops/elementwise/unary.h"
#include "rushlight/kernels/portable/movement/creation.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {
namespace {

// Runs `op` in the computing type of `common`. The result has the type `common`, or bool for
// predicates.
Status run_unary(KernelContext& ctx, const EValue& self, const EValue& out_value, Unary op,
                 DType common, DType result, LoopArgs& args) {
  const Tensor& in = self.tensor();
  Tensor& out = out_value.tensor();
  RL_TRY(check_real(ctx, "self", in));
  RL_TRY(check_castable(ctx, result, out));
  const DType compute =
      common == DType::Bool && op.op == UnaryOp::BitwiseNot ? DType::Bool : compute_dtype(common);
  const ElementwiseFn fn = op.loop(compute_index(compute));
  if (fn == nullptr) return no_loop(ctx, in.dtype);
  const Operand operands[] = {operand(in, compute)};
  const bool predicate = result == DType::Bool && common != DType::Bool;
  return run_elementwise(ctx, out, predicate ? DType::Bool : compute, operands, 1, fn, args);
}

// exp and similar operators: integers give float32.
Status float_unary(KernelContext& ctx, EValue* const* args, Unary op) {
  LoopArgs loop_args;
  const DType common = to_floating(args[0]->tensor().dtype);
  return run_unary(ctx, *args[0], *args[1], op, common, common, loop_args);
}

// abs and similar operators: the result has the type of the input.
Status same_unary(KernelContext& ctx, EValue* const* args, Unary op) {
  LoopArgs loop_args;
  const DType common = args[0]->tensor().dtype;
  return run_unary(ctx, *args[0], *args[1], op, common, common, loop_args);
}

// floor and similar operators: integers are copied.
Status round_unary(KernelContext& ctx, EValue* const* args, Unary op) {
  const Tensor& in = args[0]->tensor();
  if (is_floating(in.dtype)) return same_unary(ctx, args, op);
  Tensor& out = args[1]->tensor();
  RL_TRY(check_real(ctx, "self", in));
  RL_TRY(check_castable(ctx, in.dtype, out));
  RL_TRY(ctx.resize_like(out, in));
  return copy_view(ctx, broadcast_view(in, out), out);
}

Status fill_false(KernelContext& ctx, EValue* const* args) {
  RL_TRY(check_real(ctx, "self", args[0]->tensor()));
  RL_TRY(ctx.resize_like(args[1]->tensor(), args[0]->tensor()));
  EValue no;
  no.set_bool(false);
  return fill(ctx, args[1]->tensor(), no);
}

// isnan and isinf: false for all integers.
Status predicate_unary(KernelContext& ctx, EValue* const* args, Unary op) {
  LoopArgs loop_args;
  const DType dtype = args[0]->tensor().dtype;
  if (!is_floating(dtype)) return fill_false(ctx, args);
  return run_unary(ctx, *args[0], *args[1], op, dtype, DType::Bool, loop_args);
}

// The bound of a clamp of integers, limited to the range of `dtype`; None gives `otherwise`.
int64_t int_bound(const EValue& value, DType dtype, int64_t otherwise) {
  if (value.is_none()) return otherwise;
  int64_t bound = value.to_int();
  alignas(8) uint8_t item[8];
  convert(&bound, DType::Int64, item, dtype, 1);
  convert(item, dtype, &bound, DType::Int64, 1);
  return bound;
}

LoopArgs clamp_args(const EValue& low, const EValue& high, DType common) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  LoopArgs args;
  args.d[0] = double_or(low, -kInfinity);
  args.d[1] = double_or(high, kInfinity);
  if (is_floating(common)) return args;
  const bool wide = common == DType::Int64;
  args.i[0] = int_bound(low, common, wide ? INT64_MIN : INT32_MIN);
  args.i[1] = int_bound(high, common, wide ? INT64_MAX : INT32_MAX);
  return args;
}

}  // namespace

#define RL_KERNEL(name, family, op) \
  Status name(KernelContext& ctx, EValue* const* args) { return family(ctx, args, RL_UNARY(op)); }
RL_KERNEL(acos_out, float_unary, Acos)
RL_KERNEL(acosh_out, float_unary, Acosh)
RL_KERNEL(asin_out, float_unary, Asin)
RL_KERNEL(asinh_out, float_unary, Asinh)
RL_KERNEL(atan_out, float_unary, Atan)
RL_KERNEL(atanh_out, float_unary, Atanh)
RL_KERNEL(bitwise_not_out, same_unary, BitwiseNot)
RL_KERNEL(ceil_out, round_unary, Ceil)
RL_KERNEL(cos_out, float_unary, Cos)
RL_KERNEL(cosh_out, float_unary, Cosh)
RL_KERNEL(erf_out, float_unary, Erf)
RL_KERNEL(exp_out, float_unary, Exp)
RL_KERNEL(exp2_out, float_unary, Exp2)
RL_KERNEL(expm1_out, float_unary, Expm1)
RL_KERNEL(floor_out, round_unary, Floor)
RL_KERNEL(isinf_out, predicate_unary, IsInf)
RL_KERNEL(isnan_out, predicate_unary, IsNan)
RL_KERNEL(log10_out, float_unary, Log10)
RL_KERNEL(log1p_out, float_unary, Log1p)
RL_KERNEL(log2_out, float_unary, Log2)
RL_KERNEL(log_out, float_unary, Log)
RL_KERNEL(reciprocal_out, float_unary, Reciprocal)
RL_KERNEL(relu_out, same_unary, Relu)
RL_KERNEL(round_out, round_unary, Round)
RL_KERNEL(rsqrt_out, float_unary, Rsqrt)
RL_KERNEL(sigmoid_out, float_unary, Sigmoid)
RL_KERNEL(sign_out, same_unary, Sign)
RL_KERNEL(sin_out, float_unary, Sin)
RL_KERNEL(sinh_out, float_unary, Sinh)
RL_KERNEL(sqrt_out, float_unary, Sqrt)
RL_KERNEL(tan_out, float_unary, Tan)
RL_KERNEL(tanh_out, float_unary, Tanh)
RL_KERNEL(trunc_out, round_unary, Trunc)
#undef RL_KERNEL

Status abs_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  if (in.dtype == DType::Complex64) return complex_abs(ctx, in, args[1]->tensor());
  return same_unary(ctx, args, RL_UNARY(Abs));
}

Status neg_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  if (in.dtype == DType::Complex64) return complex_scale(ctx, in, -1.0F, args[1]->tensor());
  return same_unary(ctx, args, RL_UNARY(Neg));
}

Status logical_not_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  RL_TRY(check_real(ctx, "self", in));
  LoopArgs loop_args;
  const Operand operands[] = {operand(in, DType::Bool)};
  const ElementwiseFn fn = RL_UNARY(BitwiseNot).loop(kBool);
  if (fn == nullptr) return no_loop(ctx, DType::Bool);
  return run_elementwise(ctx, args[1]->tensor(), DType::Bool, operands, 1, fn, loop_args);
}

Status signbit_out(KernelContext& ctx, EValue* const* args) {
  LoopArgs loop_args;
  const DType dtype = args[0]->tensor().dtype;
  if (dtype == DType::Bool || dtype == DType::UInt8) return fill_false(ctx, args);
  return run_unary(ctx, *args[0], *args[1], RL_UNARY(Signbit), dtype, DType::Bool, loop_args);
}

// gelu(self, approximate, out)
Status gelu_out(KernelContext& ctx, EValue* const* args) {
  const StringView approximate = args[1]->string();
  const bool tanh = approximate == StringView("tanh");
  if (!tanh && approximate != StringView("none")) {
    return ctx.fail(Code::InvalidArgument, "approximate is '%.*s'; it is 'none' or 'tanh'",
                    approximate.len(), approximate.data());
  }
  LoopArgs loop_args;
  const DType common = to_floating(args[0]->tensor().dtype);
  return run_unary(ctx, *args[0], *args[2], tanh ? RL_UNARY(GeluTanh) : RL_UNARY(Gelu), common,
                   common, loop_args);
}

// elu(self, alpha, scale, input_scale, out)
Status elu_out(KernelContext& ctx, EValue* const* args) {
  LoopArgs loop_args;
  loop_args.d[0] = args[1]->to_double() * args[2]->to_double();
  loop_args.d[1] = args[2]->to_double();
  loop_args.d[2] = args[3]->to_double();
  const DType common = to_floating(args[0]->tensor().dtype);
  return run_unary(ctx, *args[0], *args[4], RL_UNARY(Elu), common, common, loop_args);
}

// leaky_relu(self, negative_slope, out)
Status leaky_relu_out(KernelContext& ctx, EValue* const* args) {
  LoopArgs loop_args;
  loop_args.d[0] = args[1]->to_double();
  const DType common = to_floating(args[0]->tensor().dtype);
  return run_unary(ctx, *args[0], *args[2], RL_UNARY(LeakyRelu), common, common, loop_args);
}

// logit(self, eps, out)
Status logit_out(KernelContext& ctx, EValue* const* args) {
  LoopArgs loop_args;
  loop_args.d[0] = double_or(*args[1], -1.0);
  const DType common = to_floating(args[0]->tensor().dtype);
  return run_unary(ctx, *args[0], *args[2], RL_UNARY(Logit), common, common, loop_args);
}

// hardtanh(self, min_val, max_val, out)
Status hardtanh_out(KernelContext& ctx, EValue* const* args) {
  const DType common = args[0]->tensor().dtype;
  LoopArgs loop_args = clamp_args(*args[1], *args[2], common);
  return run_unary(ctx, *args[0], *args[3], RL_UNARY(Clamp), common, common, loop_args);
}

// clamp(self, min, max, out)
Status clamp_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  ResultType type;
  RL_TRY(check_real(ctx, "self", in));
  type.add(in);
  for (int k = 1; k <= 2; ++k) {
    if (args[k]->is_none()) continue;
    type.add_scalar(*args[k]);
    if (!std::isnan(args[k]->to_double())) continue;
    RL_TRY(ctx.resize_like(args[3]->tensor(), in));
    return fill(ctx, args[3]->tensor(), *args[k]);
  }
  const DType common = type.get();
  LoopArgs loop_args = clamp_args(*args[1], *args[2], common);
  return run_unary(ctx, *args[0], *args[3], RL_UNARY(Clamp), common, common, loop_args);
}

}  // namespace rushlight::kernels
