// Arithmetic of two operands: tensors, or a tensor and a scalar.
#include "rushlight/kernels/portable/loops/elementwise/binary.h"
#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/elementwise/complex.h"
#include "rushlight/kernels/portable/elementwise/elementwise.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/loops/elementwise/unary.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {
namespace {

// The common type of two operands, each a tensor or a scalar.
Status common_type(KernelContext& ctx, const EValue& a, const EValue& b, DType* common) {
  ResultType type;
  const EValue* values[] = {&a, &b};
  // If only one of both is a tensor, its name may be `self` or `exponent`.
  const char* names[] = {"self", a.is_tensor() ? "other" : "the tensor"};
  for (int k = 0; k < 2; ++k) {
    if (values[k]->is_tensor()) {
      RL_TRY(check_real(ctx, names[k], values[k]->tensor()));
      type.add(values[k]->tensor());
    } else {
      type.add_scalar(*values[k]);
    }
  }
  *common = type.get();
  return {};
}

template <typename T>
bool has_zero(const Tensor& t) {
  const T* x = t.as<T>();
  bool any_zero = false;
  for (int64_t k = 0; k < t.numel; ++k) any_zero |= x[k] == 0;
  return any_zero;
}

bool has_zero(const EValue& divisor) {
  if (!divisor.is_tensor()) return divisor.to_double() == 0;
  const Tensor& t = divisor.tensor();
  switch (element_size(t.dtype)) {
    case 1:
      return has_zero<uint8_t>(t);
    case 2:
      return has_zero<uint16_t>(t);
    case 4:
      return has_zero<uint32_t>(t);
    default:
      return has_zero<uint64_t>(t);
  }
}

// Refuses to divide integers by zero before anything is written. The loop reports a divisor that
// becomes zero in a narrower common type.
Status check_divisor(KernelContext& ctx, const EValue& a, const EValue& b, BinaryOp op,
                     DType common) {
  const bool divides = op == BinaryOp::FloorDiv || op == BinaryOp::TruncDiv ||
                       op == BinaryOp::Fmod || op == BinaryOp::Remainder;
  if (!divides || is_floating(common)) return {};
  if ((a.is_tensor() && a.tensor().numel == 0) || !has_zero(b)) return {};
  return ctx.fail(Code::InvalidArgument, "an integer is divided by zero");
}

Status run_binary(KernelContext& ctx, const EValue& a, const EValue& b, const EValue& out,
                  Binary op, DType common, LoopArgs& args) {
  RL_TRY(check_castable(ctx, common, out.tensor()));
  const DType compute = compute_dtype(common);
  const ElementwiseFn fn = op.loop(compute_index(compute));
  if (fn == nullptr) return no_loop(ctx, common);
  RL_TRY(check_divisor(ctx, a, b, op.op, common));
  const Operand operands[] = {operand(a, compute, common), operand(b, compute, common)};
  return run_elementwise(ctx, out.tensor(), compute, operands, 2, fn, args);
}

bool is_complex(const EValue& out) { return out.tensor().dtype == DType::Complex64; }

// mul and similar operators. The arguments are self, other, out.
Status plain_binary(KernelContext& ctx, EValue* const* args, Binary op) {
  DType common;
  RL_TRY(common_type(ctx, *args[0], *args[1], &common));
  LoopArgs loop_args;
  return run_binary(ctx, *args[0], *args[1], *args[2], op, common, loop_args);
}

// div and similar operators: integers give float32.
Status float_binary(KernelContext& ctx, const EValue& a, const EValue& b, const EValue& out,
                    Binary op) {
  DType common;
  RL_TRY(common_type(ctx, a, b, &common));
  LoopArgs loop_args;
  return run_binary(ctx, a, b, out, op, to_floating(common), loop_args);
}

// a + sign * alpha * b
Status add_scaled(KernelContext& ctx, const EValue& a, const EValue& b, const EValue& alpha,
                  const EValue& out, int sign) {
  if (is_complex(out)) {
    return complex_binary(ctx, ComplexOp::Add, a, b, sign * alpha.to_double(), out.tensor());
  }
  DType common;
  RL_TRY(common_type(ctx, a, b, &common));
  if (!is_floating(common) && alpha.tag == Tag::Double) {
    return ctx.fail(Code::InvalidArgument,
                    "alpha is %g, but must be an integer for operands of type %s",
                    alpha.to_double(), dtype_name(common));
  }
  LoopArgs loop_args;
  loop_args.d[0] = sign * alpha.to_double();
  loop_args.i[0] = static_cast<int64_t>(static_cast<uint64_t>(alpha.to_int()) *
                                        static_cast<uint64_t>(static_cast<int64_t>(sign)));
  const Binary op = loop_args.d[0] == 1.0 ? RL_BINARY(Add) : RL_BINARY(AddAlpha);
  return run_binary(ctx, a, b, out, op, common, loop_args);
}

Status divide(KernelContext& ctx, const EValue& a, const EValue& b, const EValue& mode,
              const EValue& out) {
  if (mode.is_none()) return float_binary(ctx, a, b, out, RL_BINARY(Div));
  const StringView rounding = mode.string();
  const bool floor = rounding == StringView("floor");
  if (!floor && rounding != StringView("trunc")) {
    return ctx.fail(Code::InvalidArgument,
                    "rounding_mode is '%.*s'; it is None, 'floor' or 'trunc'", rounding.len(),
                    rounding.data());
  }
  DType common;
  RL_TRY(common_type(ctx, a, b, &common));
  LoopArgs loop_args;
  return run_binary(ctx, a, b, out, floor ? RL_BINARY(FloorDiv) : RL_BINARY(TruncDiv), common,
                    loop_args);
}

// Replaces a power by a cheaper operator; false if there is none for `exponent`.
bool cheap_power(double exponent, Unary* op) {
  if (exponent == 0.5) *op = RL_UNARY(Sqrt);
  if (exponent == -0.5) *op = RL_UNARY(Rsqrt);
  if (exponent == -1.0) *op = RL_UNARY(Reciprocal);
  return exponent == 0.5 || exponent == -0.5 || exponent == -1.0;
}

}  // namespace

#define RL_KERNEL(name, op)                              \
  Status name(KernelContext& ctx, EValue* const* args) { \
    return plain_binary(ctx, args, RL_BINARY(op));       \
  }
RL_KERNEL(floor_divide_out, FloorDiv)
RL_KERNEL(fmod_out, Fmod)
RL_KERNEL(maximum_out, Maximum)
RL_KERNEL(minimum_out, Minimum)
RL_KERNEL(pow_out, Pow)
RL_KERNEL(remainder_out, Remainder)
#undef RL_KERNEL

Status mul_out(KernelContext& ctx, EValue* const* args) {
  if (!is_complex(*args[2])) return plain_binary(ctx, args, RL_BINARY(Mul));
  return complex_binary(ctx, ComplexOp::Multiply, *args[0], *args[1], 1.0, args[2]->tensor());
}

// add(self, other, alpha, out), also with a scalar other
Status add_out(KernelContext& ctx, EValue* const* args) {
  return add_scaled(ctx, *args[0], *args[1], *args[2], *args[3], 1);
}

Status sub_out(KernelContext& ctx, EValue* const* args) {
  return add_scaled(ctx, *args[0], *args[1], *args[2], *args[3], -1);
}

// other - alpha * self
Status rsub_out(KernelContext& ctx, EValue* const* args) {
  return add_scaled(ctx, *args[1], *args[0], *args[2], *args[3], -1);
}

Status div_out(KernelContext& ctx, EValue* const* args) {
  if (!is_complex(*args[2])) return float_binary(ctx, *args[0], *args[1], *args[2], RL_BINARY(Div));
  return complex_binary(ctx, ComplexOp::Divide, *args[0], *args[1], 1.0, args[2]->tensor());
}

// div(self, other, rounding_mode, out)
Status div_mode_out(KernelContext& ctx, EValue* const* args) {
  return divide(ctx, *args[0], *args[1], *args[2], *args[3]);
}

Status atan2_out(KernelContext& ctx, EValue* const* args) {
  return float_binary(ctx, *args[0], *args[1], *args[2], RL_BINARY(Atan2));
}

Status hypot_out(KernelContext& ctx, EValue* const* args) {
  return float_binary(ctx, *args[0], *args[1], *args[2], RL_BINARY(Hypot));
}

// copysign(self, other, out), also with a scalar other
Status copysign_out(KernelContext& ctx, EValue* const* args) {
  return float_binary(ctx, *args[0], *args[1], *args[2], RL_BINARY(CopySign));
}

Status nextafter_out(KernelContext& ctx, EValue* const* args) {
  DType common;
  RL_TRY(common_type(ctx, *args[0], *args[1], &common));
  if (!is_floating(common)) {
    return ctx.fail(Code::NotSupported, "the operands are %s, but must be floating",
                    dtype_name(common));
  }
  LoopArgs loop_args;
  loop_args.i[0] = common == DType::BFloat16 ? 1 << 16 : 1;
  const Binary op = common == DType::Float16 ? RL_BINARY(NextAfterHalf) : RL_BINARY(NextAfter);
  return run_binary(ctx, *args[0], *args[1], *args[2], op, common, loop_args);
}

// pow(self, scalar exponent, out)
Status pow_tensor_scalar_out(KernelContext& ctx, EValue* const* args) {
  DType common;
  RL_TRY(common_type(ctx, *args[0], *args[1], &common));
  const double exponent = args[1]->to_double();
  if (!is_floating(common) && exponent < 0) {
    return ctx.fail(Code::InvalidArgument,
                    "integers to the negative power %g are not defined; convert self to a floating "
                    "type",
                    exponent);
  }
  LoopArgs loop_args;
  if (exponent == 2.0) {
    return run_binary(ctx, *args[0], *args[0], *args[2], RL_BINARY(Mul), common, loop_args);
  }
  if (exponent == 3.0 && is_floating(common)) {
    return run_binary(ctx, *args[0], *args[0], *args[2], RL_BINARY(Cube), common, loop_args);
  }
  Unary op;
  if (is_floating(common) && cheap_power(exponent, &op)) {
    RL_TRY(check_castable(ctx, common, args[2]->tensor()));
    const DType compute = compute_dtype(common);
    const Operand operands[] = {operand(args[0]->tensor(), compute)};
    const ElementwiseFn fn = op.loop(compute_index(compute));
    if (fn == nullptr) return no_loop(ctx, common);
    return run_elementwise(ctx, args[2]->tensor(), compute, operands, 1, fn, loop_args);
  }
  return run_binary(ctx, *args[0], *args[1], *args[2], RL_BINARY(Pow), common, loop_args);
}

}  // namespace rushlight::kernels
