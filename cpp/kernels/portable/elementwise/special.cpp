// Special functions, elementwise: computed in double and rounded once.
#include "rushlight/kernels/portable/elementwise/special.h"

#include <cmath>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/elementwise/elementwise.h"
#include "rushlight/kernels/portable/elementwise/special_math.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/loops/elementwise/special.h"
#include "rushlight/kernels/portable/loops/elementwise/unary.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {
namespace {

template <double (*fn)(double)>
void unary_loop(const void* const* in, void* out, size_t n, LoopArgs*) {
  const double* x = static_cast<const double*>(in[0]);
  for (size_t i = 0; i < n; ++i) static_cast<double*>(out)[i] = fn(x[i]);
}

template <double (*fn)(double, double)>
void binary_loop(const void* const* in, void* out, size_t n, LoopArgs*) {
  const double* x = static_cast<const double*>(in[0]);
  const double* y = static_cast<const double*>(in[1]);
  for (size_t i = 0; i < n; ++i) static_cast<double*>(out)[i] = fn(x[i], y[i]);
}

void polygamma_loop(const void* const* in, void* out, size_t n, LoopArgs* args) {
  const double* x = static_cast<const double*>(in[0]);
  for (size_t i = 0; i < n; ++i) {
    static_cast<double*>(out)[i] = special::polygamma(args->i[0], x[i], args->i[1] != 0);
  }
}

int64_t gcd(int64_t a, int64_t b) {
  // Unsigned, because the magnitude of the lowest int64 does not fit a signed number.
  uint64_t x = a < 0 ? 0 - static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
  uint64_t y = b < 0 ? 0 - static_cast<uint64_t>(b) : static_cast<uint64_t>(b);
  while (y != 0) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return static_cast<int64_t>(x);
}

void gcd_loop(const void* const* in, void* out, size_t n, LoopArgs*) {
  const int64_t* a = static_cast<const int64_t*>(in[0]);
  const int64_t* b = static_cast<const int64_t*>(in[1]);
  for (size_t i = 0; i < n; ++i) static_cast<int64_t*>(out)[i] = gcd(a[i], b[i]);
}

void mantissa_loop(const void* const* in, void* out, size_t n, LoopArgs*) {
  const double* x = static_cast<const double*>(in[0]);
  int exponent;
  for (size_t i = 0; i < n; ++i) static_cast<double*>(out)[i] = std::frexp(x[i], &exponent);
}

void exponent_loop(const void* const* in, void* out, size_t n, LoopArgs*) {
  const double* x = static_cast<const double*>(in[0]);
  for (size_t i = 0; i < n; ++i) {
    int exponent = 0;
    if (std::isfinite(x[i])) std::frexp(x[i], &exponent);
    static_cast<int32_t*>(out)[i] = exponent;
  }
}

Status real_function(KernelContext& ctx, EValue* const* args, size_t n, ElementwiseFn fn,
                     const char* const* names = kSelfOther) {
  DType common;
  RL_TRY(common_type(ctx, args, n, &common, names));
  LoopArgs loop_args;
  return run_in_common_type(ctx, args, n, *args[n], to_floating(common), DType::Float64, fn,
                            loop_args);
}

const char* const kX[] = {"x"};

Status special_function(KernelContext& ctx, EValue* const* args, SpecialOp op,
                        const char* const* names = kSelfOther) {
  return real_function(ctx, args, 1, special_loops().fn[static_cast<size_t>(op)], names);
}

}  // namespace

Status run_in_common_type(KernelContext& ctx, EValue* const* inputs, size_t n, const EValue& out,
                          DType common, DType as, ElementwiseFn fn, LoopArgs& args) {
  RL_TRY(check_castable(ctx, common, out.tensor()));
  Operand operands[kMaxOperands];
  for (size_t k = 0; k < n; ++k) operands[k] = operand(*inputs[k], as, common);
  return run_elementwise(ctx, out.tensor(), as, operands, n, fn, args);
}

const char* const kSelfOther[] = {"self", "other"};

Status common_type(KernelContext& ctx, EValue* const* inputs, size_t n, DType* common,
                   const char* const* names) {
  ResultType type;
  for (size_t k = 0; k < n; ++k) {
    if (inputs[k]->is_tensor()) {
      RL_TRY(check_real(ctx, names[k], inputs[k]->tensor()));
      type.add(inputs[k]->tensor());
    } else {
      type.add_scalar(*inputs[k]);
    }
  }
  *common = type.get();
  return {};
}

#define RL_KERNEL(name, loop, n) \
  Status name(KernelContext& ctx, EValue* const* args) { return real_function(ctx, args, n, loop); }
RL_KERNEL(digamma_out, unary_loop<special::digamma>, 1)
RL_KERNEL(igamma_out, binary_loop<special::igamma>, 2)
RL_KERNEL(igammac_out, binary_loop<special::igammac>, 2)
RL_KERNEL(special_bessel_j0_out, unary_loop<special::bessel_j0>, 1)
RL_KERNEL(special_bessel_j1_out, unary_loop<special::bessel_j1>, 1)
RL_KERNEL(special_bessel_y0_out, unary_loop<special::bessel_y0>, 1)
RL_KERNEL(special_bessel_y1_out, unary_loop<special::bessel_y1>, 1)
RL_KERNEL(special_zeta_out, binary_loop<special::zeta>, 2)
#undef RL_KERNEL

// The argument of these operators is called x.
#define RL_KERNEL(name, loop)                            \
  Status name(KernelContext& ctx, EValue* const* args) { \
    return real_function(ctx, args, 1, loop, kX);        \
  }
RL_KERNEL(special_airy_ai_out, unary_loop<special::airy_ai>)
RL_KERNEL(special_spherical_bessel_j0_out, unary_loop<special::spherical_bessel_j0>)
#undef RL_KERNEL

#define RL_KERNEL(name, op)                                \
  Status name(KernelContext& ctx, EValue* const* args) {   \
    return special_function(ctx, args, SpecialOp::op, kX); \
  }
RL_KERNEL(special_scaled_modified_bessel_k0_out, K0e)
RL_KERNEL(special_scaled_modified_bessel_k1_out, K1e)
#undef RL_KERNEL

#define RL_KERNEL(name, op)                              \
  Status name(KernelContext& ctx, EValue* const* args) { \
    return special_function(ctx, args, SpecialOp::op);   \
  }
RL_KERNEL(erfc_out, Erfc)
RL_KERNEL(i0_out, I0)
RL_KERNEL(special_erfcx_out, Erfcx)
RL_KERNEL(special_i0e_out, I0e)
RL_KERNEL(special_i1_out, I1)
RL_KERNEL(special_i1e_out, I1e)
RL_KERNEL(special_modified_bessel_k0_out, K0)
RL_KERNEL(special_modified_bessel_k1_out, K1)
RL_KERNEL(lgamma_out, Lgamma)
RL_KERNEL(special_log_ndtr_out, LogNdtr)
RL_KERNEL(special_ndtri_out, Ndtri)
#undef RL_KERNEL

Status erfinv_out(KernelContext& ctx, EValue* const* args) {
  DType common;
  RL_TRY(common_type(ctx, args, 1, &common));
  if (common == DType::Float64) return special_function(ctx, args, SpecialOp::Erfinv);
  LoopArgs loop_args;
  const ElementwiseFn loop = RL_UNARY(Erfinv).loop(kF32);
  if (loop == nullptr) return no_loop(ctx, common);
  return run_in_common_type(ctx, args, 1, *args[1], to_floating(common), DType::Float32, loop,
                            loop_args);
}

// polygamma(n, self, out)
Status polygamma_out(KernelContext& ctx, EValue* const* args) {
  const int64_t n = args[0]->to_int();
  if (n < 0) {
    return ctx.fail(Code::InvalidArgument, "n is %lld, but must not be negative",
                    static_cast<long long>(n));
  }
  DType common;
  RL_TRY(common_type(ctx, args + 1, 1, &common));
  LoopArgs loop_args;
  loop_args.i[0] = n;
  loop_args.i[1] = common == DType::Float64;
  return run_in_common_type(ctx, args + 1, 1, *args[2], to_floating(common), DType::Float64,
                            polygamma_loop, loop_args);
}

Status gcd_out(KernelContext& ctx, EValue* const* args) {
  DType common;
  RL_TRY(common_type(ctx, args, 2, &common));
  const char* const names[] = {"self", "other"};
  for (size_t i = 0; i < 2; ++i) {
    const DType dtype = args[i]->tensor().dtype;
    if (!is_floating(dtype) && common != DType::Bool) continue;
    return ctx.fail(Code::NotSupported, "%s is %s, but must be of integers", names[i],
                    dtype_name(dtype));
  }
  LoopArgs loop_args;
  return run_in_common_type(ctx, args, 2, *args[2], common, DType::Int64, gcd_loop, loop_args);
}

// frexp(self, mantissa, exponent)
Status frexp_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  Tensor& exponent = args[2]->tensor();
  RL_TRY(check_real(ctx, "self", self));
  if (!is_floating(self.dtype) || exponent.dtype != DType::Int32) {
    return ctx.fail(Code::NotSupported,
                    "self is %s and exponent %s, but must be floating and int32",
                    dtype_name(self.dtype), dtype_name(exponent.dtype));
  }
  LoopArgs loop_args;
  RL_TRY(run_in_common_type(ctx, args, 1, *args[1], self.dtype, DType::Float64, mantissa_loop,
                            loop_args));
  const Operand operands[] = {operand(self, DType::Float64)};
  return run_elementwise(ctx, exponent, DType::Int32, operands, 1, exponent_loop, loop_args);
}

}  // namespace rushlight::kernels
