#include "rushlight/kernels/portable/loops/elementwise/unary.h"

#include "rushlight/kernel/loops/trig.h"
#include "rushlight/kernel/loops/vec_math.h"

namespace rushlight::kernels::RL_ISA {
namespace {

// The parameters of LoopArgs in the type of the loop.
template <typename T>
struct Params {
  T p0, p1, p2;
};
template <typename T>
Params<T> params_of(const LoopArgs& a) {
  return {static_cast<T>(a.d[0]), static_cast<T>(a.d[1]), static_cast<T>(a.d[2])};
}
template <>
Params<int64_t> params_of<int64_t>(const LoopArgs& a) {
  return {a.i[0], a.i[1], a.i[2]};
}
template <>
Params<int32_t> params_of<int32_t>(const LoopArgs& a) {
  return {static_cast<int32_t>(a.i[0]), static_cast<int32_t>(a.i[1]), static_cast<int32_t>(a.i[2])};
}

template <typename Op, typename T>
void loop(const void* const* in, void* out, size_t n, LoopArgs* args) {
  using Result = decltype(Op::apply(T{}, Params<T>{}));
  const T* x = static_cast<const T*>(in[0]);
  Result* y = static_cast<Result*>(out);
  const Params<T> p = params_of<T>(*args);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = Op::apply(x[i], p);
}

// sin, cos and tan: a block with arguments beyond the range of the fast reduction is computed in
// double, without that reduction.
template <typename Op>
void trig_loop(const void* const* in, void* out, size_t n, LoopArgs*) {
  const float* x = static_cast<const float*>(in[0]);
  float* y = static_cast<float*>(out);
  for (size_t start = 0; start < n; start += 256) {
    const size_t end = n - start < 256 ? n : start + 256;
    int beyond = 0;
    for (size_t i = start; i < end; ++i) beyond |= vabs(x[i]) > kTrigLimit;
    if (beyond != 0) {
      for (size_t i = start; i < end; ++i) {
        y[i] = static_cast<float>(Op::exact(static_cast<double>(x[i])));
      }
      continue;
    }
    RL_VECTORIZE
    for (size_t i = start; i < end; ++i) y[i] = Op::apply(x[i], Params<float>{});
  }
}

#define RL_OP(Name, expression)                                   \
  struct Name {                                                   \
    template <typename T>                                         \
    static auto apply(T x, [[maybe_unused]] const Params<T>& p) { \
      return expression;                                          \
    }                                                             \
  };
#define RL_TRIG_OP(Name, fast, library)                  \
  struct Name {                                          \
    template <typename T>                                \
    static T apply(T x, const Params<T>&) {              \
      return fast(x);                                    \
    }                                                    \
    static double exact(double x) { return library(x); } \
  };

float root(float x) { return sqrtf(x); }
double root(double x) { return sqrt(x); }

RL_OP(Exp, vexp(x))
RL_OP(Exp2, vexp2(x))
RL_OP(Expm1, vexpm1(x))
RL_OP(Log, vlog(x))
RL_OP(Log1p, vlog1p(x))
RL_OP(Log2, vlog2(x))
RL_OP(Log10, vlog10(x))
RL_OP(Sqrt, root(x))
RL_OP(Rsqrt, T(1) / root(x))
RL_OP(Reciprocal, T(1) / x)
RL_OP(Sigmoid, vsigmoid(x))
RL_OP(Tanh, vtanh(x))
RL_OP(Erf, verf(x))
RL_TRIG_OP(Sin, vsin, sin)
RL_TRIG_OP(Cos, vcos, cos)
RL_TRIG_OP(Tan, vtan, tan)
RL_OP(Asin, vasin(x))
RL_OP(Acos, vacos(x))
RL_OP(Atan, vatan(x))
RL_OP(Sinh, vsinh(x))
RL_OP(Cosh, vcosh(x))
RL_OP(Asinh, vasinh(x))
RL_OP(Acosh, vacosh(x))
RL_OP(Atanh, vatanh(x))
RL_OP(Gelu, T(0.5) * x * (T(1) + verf(x * T(0.70710678118654752440))))
RL_OP(GeluTanh,
      T(0.5) * x * (T(1) + vtanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x))))
RL_OP(Elu, x <= T(0) ? vexpm1(x * p.p2) * p.p0 : x * p.p1)
RL_OP(LeakyRelu, x > T(0) ? x : x * p.p0)
RL_OP(Floor, vfloor(x))
RL_OP(Ceil, vceil(x))
RL_OP(Round, vround(x))
RL_OP(Trunc, vtrunc(x))
RL_OP(Relu, x < T(0) ? T(0) : x)
RL_OP(IsNan, static_cast<uint8_t>(x != x))
RL_OP(IsInf, static_cast<uint8_t>(vabs(x) == T(kInf)))
RL_OP(BitwiseNot, static_cast<T>(~x))

struct BoolNot {
  static uint8_t apply(uint8_t x, const Params<uint8_t>&) { return x == 0; }
};

struct Logit {
  template <typename T>
  static T apply(T x, const Params<T>& p) {
    const T high = T(1) - p.p0;
    T y = x < p.p0 ? p.p0 : x;
    y = y > high ? high : y;
    y = p.p0 < T(0) ? x : y;
    return vlog(y / (T(1) - y));
  }
};

struct Abs {
  static float apply(float x, const Params<float>&) { return vabs(x); }
  static double apply(double x, const Params<double>&) { return fabs(x); }
  static int64_t apply(int64_t x, const Params<int64_t>&) {
    return static_cast<int64_t>(x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x));
  }
  static int32_t apply(int32_t x, const Params<int32_t>&) {
    return static_cast<int32_t>(x < 0 ? 0 - static_cast<uint32_t>(x) : static_cast<uint32_t>(x));
  }
};

struct Neg {
  static float apply(float x, const Params<float>&) { return -x; }
  static double apply(double x, const Params<double>&) { return -x; }
  static int64_t apply(int64_t x, const Params<int64_t>&) {
    return static_cast<int64_t>(0 - static_cast<uint64_t>(x));
  }
  static int32_t apply(int32_t x, const Params<int32_t>&) {
    return static_cast<int32_t>(0 - static_cast<uint32_t>(x));
  }
};

// Giles, Approximating the erfinv function (2010): two polynomials in -log(1 - x^2).
struct Erfinv {
  static float apply(float x, const Params<float>&) {
    const float w = -vlog((1.0f - x) * (1.0f + x));
    const float a = w - 2.5f;
    float near = 2.81022636e-08f;
    near = near * a + 3.43273939e-07f;
    near = near * a - 3.5233877e-06f;
    near = near * a - 4.39150654e-06f;
    near = near * a + 0.00021858087f;
    near = near * a - 0.00125372503f;
    near = near * a - 0.00417768164f;
    near = near * a + 0.246640727f;
    near = near * a + 1.50140941f;
    const float b = root(w) - 3.0f;
    float far = -0.000200214257f;
    far = far * b + 0.000100950558f;
    far = far * b + 0.00134934322f;
    far = far * b - 0.00367342844f;
    far = far * b + 0.00573950773f;
    far = far * b - 0.0076224613f;
    far = far * b + 0.00943887047f;
    far = far * b + 1.00167406f;
    far = far * b + 2.83297682f;
    const float y = (w < 5.0f ? near : far) * x;
    return vabs(x) == 1.0f ? x * kInf : y;
  }
};

struct Sign {
  template <typename T>
  static T apply(T x, const Params<T>&) {
    // NaN compares false twice, which gives 0, as in torch.
    return static_cast<T>((x > T(0)) - (x < T(0)));
  }
};

struct Signbit {
  static uint8_t apply(float x, const Params<float>&) {
    return static_cast<uint8_t>(bits_of(x) >> 31);
  }
  static uint8_t apply(double x, const Params<double>&) {
    return static_cast<uint8_t>(bits_of(x) >> 63);
  }
  template <typename T>
  static uint8_t apply(T x, const Params<T>&) {
    return static_cast<uint8_t>(x < 0);
  }
};

struct Clamp {
  template <typename T>
  static T apply(T x, const Params<T>& p) {
    const T y = x < p.p0 ? p.p0 : x;
    return y > p.p1 ? p.p1 : y;
  }
};

}  // namespace

#define RL_FLOAT(Op)                                                                         \
  {                                                                                          \
    {                                                                                        \
      RL_KEEP(kF32, (loop<Op, float>)), RL_KEEP(kF64, (loop<Op, double>)), nullptr, nullptr, \
          nullptr                                                                            \
    }                                                                                        \
  }
#define RL_TRIG(Op)                                                                                \
  {                                                                                                \
    {                                                                                              \
      RL_KEEP(kF32, (trig_loop<Op>)), RL_KEEP(kF64, (loop<Op, double>)), nullptr, nullptr, nullptr \
    }                                                                                              \
  }
#define RL_REAL(Op)                                                                       \
  {                                                                                       \
    {                                                                                     \
      RL_KEEP(kF32, (loop<Op, float>)), RL_KEEP(kF64, (loop<Op, double>)),                \
          RL_KEEP(kI64, (loop<Op, int64_t>)), RL_KEEP(kI32, (loop<Op, int32_t>)), nullptr \
    }                                                                                     \
  }

const UnaryRow unary_Exp = RL_FLOAT(Exp);
const UnaryRow unary_Exp2 = RL_FLOAT(Exp2);
const UnaryRow unary_Expm1 = RL_FLOAT(Expm1);
const UnaryRow unary_Log = RL_FLOAT(Log);
const UnaryRow unary_Log1p = RL_FLOAT(Log1p);
const UnaryRow unary_Log2 = RL_FLOAT(Log2);
const UnaryRow unary_Log10 = RL_FLOAT(Log10);
const UnaryRow unary_Sqrt = RL_FLOAT(Sqrt);
const UnaryRow unary_Rsqrt = RL_FLOAT(Rsqrt);
const UnaryRow unary_Reciprocal = RL_FLOAT(Reciprocal);
const UnaryRow unary_Sigmoid = RL_FLOAT(Sigmoid);
const UnaryRow unary_Tanh = RL_FLOAT(Tanh);
const UnaryRow unary_Erf = RL_FLOAT(Erf);
const UnaryRow unary_Erfinv = {
    {RL_KEEP(kF32, (loop<Erfinv, float>)), nullptr, nullptr, nullptr, nullptr}};
const UnaryRow unary_Sin = RL_TRIG(Sin);
const UnaryRow unary_Cos = RL_TRIG(Cos);
const UnaryRow unary_Tan = RL_TRIG(Tan);
const UnaryRow unary_Asin = RL_FLOAT(Asin);
const UnaryRow unary_Acos = RL_FLOAT(Acos);
const UnaryRow unary_Atan = RL_FLOAT(Atan);
const UnaryRow unary_Sinh = RL_FLOAT(Sinh);
const UnaryRow unary_Cosh = RL_FLOAT(Cosh);
const UnaryRow unary_Asinh = RL_FLOAT(Asinh);
const UnaryRow unary_Acosh = RL_FLOAT(Acosh);
const UnaryRow unary_Atanh = RL_FLOAT(Atanh);
const UnaryRow unary_Gelu = RL_FLOAT(Gelu);
const UnaryRow unary_GeluTanh = RL_FLOAT(GeluTanh);
const UnaryRow unary_Elu = RL_FLOAT(Elu);
const UnaryRow unary_LeakyRelu = RL_FLOAT(LeakyRelu);
const UnaryRow unary_Logit = RL_FLOAT(Logit);
const UnaryRow unary_Floor = RL_FLOAT(Floor);
const UnaryRow unary_Ceil = RL_FLOAT(Ceil);
const UnaryRow unary_Round = RL_FLOAT(Round);
const UnaryRow unary_Trunc = RL_FLOAT(Trunc);
const UnaryRow unary_Abs = RL_REAL(Abs);
const UnaryRow unary_Neg = RL_REAL(Neg);
const UnaryRow unary_Sign = RL_REAL(Sign);
const UnaryRow unary_Relu = RL_REAL(Relu);
const UnaryRow unary_Clamp = RL_REAL(Clamp);
const UnaryRow unary_Signbit = RL_REAL(Signbit);
const UnaryRow unary_IsNan = RL_FLOAT(IsNan);
const UnaryRow unary_IsInf = RL_FLOAT(IsInf);
const UnaryRow unary_BitwiseNot = {{nullptr, nullptr, RL_KEEP(kI64, (loop<BitwiseNot, int64_t>)),
                                    RL_KEEP(kI32, (loop<BitwiseNot, int32_t>)),
                                    RL_KEEP(kBool, (loop<BoolNot, uint8_t>))}};

}  // namespace rushlight::kernels::RL_ISA
